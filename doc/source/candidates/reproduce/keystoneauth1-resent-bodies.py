"""keystoneauth1 up to 5.18: a file whose upload is answered with 401 is sent again from where it was read to.

The server is in this process. Exits with 1 if it accepts an upload without the file's content.
"""

import http.server
import io
import sys
import threading

from keystoneauth1 import session, token_endpoint

DATA = b"the content"
got = []


class Server(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        body = b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        got.append(body)
        self.send_response(401 if len(got) == 1 else 201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


class Token(token_endpoint.Token):
    def invalidate(self):
        return True


server = http.server.HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/"
status = session.Session(Token(url, "token")).put(url, data=io.BytesIO(DATA)).status_code
print(f"the server answered {status} to an upload of {len(got[-1])} bytes, the file has {len(DATA)}")
sys.exit(got[-1] != DATA)
