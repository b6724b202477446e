"""urllib3 2.8: a file whose upload is redirected by 307 is sent again from where it was read to.

The server is in this process. Exits with 1 if it gets a request without the file's content.
"""

import http.server
import io
import sys
import threading

import urllib3

DATA = b"the content"
got = []


class Server(http.server.BaseHTTPRequestHandler):
    timeout = 2

    def do_PUT(self):
        try:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
        except TimeoutError:
            got.append(b"")
        self.send_response(307 if self.path == "/" else 201)
        self.send_header("Location", "/there")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/"
urllib3.request("PUT", url, body=io.BytesIO(DATA), headers={"Content-Length": str(len(DATA))})
print(f"after the redirect {len(DATA)} bytes are announced, and {len(got[-1])} sent")
sys.exit(got[-1] != DATA)
