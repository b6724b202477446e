"""glance in workers of oslo.service's threading launcher, as a program: ``… START_METHOD WORKERS ADDRESS``."""

import socket
import sys
import threading
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from oslo_config import cfg
from oslo_service import backend
from oslo_service.backend.base import ServiceBase


class Server(ThreadingMixIn, WSGIServer):
    """One of several at the same port."""

    daemon_threads = True

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()


class Api(ServiceBase):
    """glance-api; it is loaded where it starts, be that in another interpreter."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self._address = host, int(port)

    def start(self) -> None:
        from glance.wsgi import api

        self._server = Server(self._address, WSGIRequestHandler)
        self._server.set_app(api.application)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()

    def wait(self) -> None:
        self._thread.join()

    def reset(self) -> None:
        pass


def main(method: str, workers: str, address: str) -> None:
    backend.init_backend(backend.BackendType.THREADING)
    from oslo_service import service

    conf = cfg.ConfigOpts()
    conf([])
    service.launch(conf, Api(address), workers=int(workers), start_method=method).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
