# Builds Octavo from a clone, for Homebrew on Apple silicon. Homebrew accepts formulas only from taps:
#   brew tap-new local/octavo
#   cp deploy/homebrew/octavo.rb "$(brew --repository local/octavo)/Formula/"
#   HOMEBREW_OCTAVO_GIT="file://$PWD" brew install --HEAD local/octavo/octavo
class Octavo < Formula
  desc "Native LLM server with a paged KV cache and reproducible output"
  license "Apache-2.0"
  head ENV.fetch("HOMEBREW_OCTAVO_GIT", "file://#{Dir.pwd}"), using: :git, branch: ENV.fetch("HOMEBREW_OCTAVO_BRANCH", "main")

  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "cppzmq" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "pkgconf" => :build
  depends_on "python" => :build
  depends_on "rust" => :build
  depends_on arch: :arm64
  depends_on "boost"
  depends_on "fmt"
  depends_on "libedit"
  depends_on macos: :sonoma
  depends_on "mlx"
  depends_on "prometheus-cpp"
  depends_on "spdlog"
  depends_on "zeromq"
  uses_from_macos "sqlite"

  def install
    pinned = (buildpath/"cmake/mlx_version.txt").read.strip
    found = Formula["mlx"].version.to_s
    odie "octavo needs mlx #{pinned}, but Homebrew has #{found}; build with tools/bootstrap.sh instead" if found != pinned

    args = ["-G", "Ninja", "-DMLX_ROOT=#{Formula["mlx"].opt_prefix}", "-DOCTAVO_TESTS=OFF", "-DOCTAVO_BENCH_ONEDNN=OFF"]
    system "cmake", "-S", ".", "-B", "build", *args, *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  service do
    run [opt_bin/"octavo", "serve", var/"octavo/model.gguf"]
    keep_alive successful_exit: false
    log_path var/"log/octavo.log"
    error_log_path var/"log/octavo.log"
  end

  test do
    assert_match "octavo", shell_output("#{bin}/octavo --version")
    assert_match "MLX", shell_output("#{bin}/octavo doctor --port 0")
  end
end
