"""Hostile URLs of images, for a server with --allowed-media-domains localhost,images.example."""

REFUSED = [
    # Allowed by name, but not on the public internet.
    "https://localhost/a.png", "https://LOCALHOST:443/a.png", "https://localhost", "https://localhost?a=b",
    # Other schemes.
    "http://images.example/a.png", "ftp://images.example/a.png", "file:///etc/passwd", "file://localhost/etc/passwd", "/etc/passwd",
    "gopher://images.example/", "javascript:alert(1)", "blob:https://images.example/1", "//images.example/a.png", "images.example/a.png",
    "https:images.example/a.png", "https:/images.example/a.png", "https:///images.example/a.png", "https://", "https:",
    # Other hosts.
    "https://other.example/a.png", "https://sub.images.example/a.png", "https://images.example.other.example/a.png",
    "https://notimages.example/a.png", "https://images.example./a.png", "https://.images.example/a.png",
    "https://other.example#images.example", "https://other.example?images.example", "https://other.example/https://images.example/",
    "https://metadata.google.internal/computeMetadata/v1/",
    # Users, ports.
    "https://user@images.example/a.png", "https://user:secret@images.example/a.png", "https://images.example@other.example/a.png",
    "https://images.example:443@other.example/a.png", "https://images.example:80/a.png", "https://localhost:8000/v1/models",
    "https://images.example:/a.png", "https://images.example:0443/a.png",
    # Characters that parsers read differently.
    "https:\\\\images.example\\a.png", "https://other.example\\.images.example/a.png", "https://images.example\\@other.example/",
    "https://images.example/a\r\nHost: other.example", "https://images.example/a b.png", " https://images.example/a.png",
    "https://images.example\t/a.png", "https://images%2eexample/a.png", "https://images.example%00.other.example/",
    "https://images\u3002example/a.png", "https://\uff49mages.example/a.png", "https://images.example/\0",
    # Addresses.
    "https://127.0.0.1/a.png", "https://127.1/a.png", "https://2130706433/a.png", "https://0x7f000001/a.png", "https://0177.0.0.1/a.png",
    "https://0/a.png", "https://[::1]/a.png", "https://[::]:443/a.png", "https://[::ffff:127.0.0.1]/a.png", "https://[fe80::1%25lo]/a.png",
    "https://169.254.169.254/latest/meta-data/", "https://10.0.0.1/a.png", "https://192.168.0.1/a.png",
    # Lengths, and what must not be repeated.
    "https://images.example/" + "a" * 9000, "https://other.example/a.png?signature=secret",
]

# None of these is a host name.
NEVER_ALLOWED = ["127.0.0.1", "2130706433", "[::1]", "*.example", "https://images.example", "images.example:443", "images.example."]
