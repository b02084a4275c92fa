"""Takes OTLP spans over gRPC and passes them on over HTTP, for programs that send gRPC only.

    grpc_to_http.py HTTP_URL

Prints its port. Needs grpcio; runs in an environment of its own."""

import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import grpc

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


class PassOn(grpc.GenericRpcHandler):
    """The message is the same in both protocols, so it is not parsed."""

    def __init__(self, url: str):
        self.url = url

    def service(self, call):
        return grpc.unary_unary_rpc_method_handler(self.export) if call.method == EXPORT else None

    def export(self, message: bytes, _) -> bytes:
        request = urllib.request.Request(self.url, message, {"Content-Type": "application/x-protobuf"})
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.read()


def main() -> None:
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((PassOn(sys.argv[1]),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
