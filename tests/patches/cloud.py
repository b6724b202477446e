"""Clients of openstacksdk for the server of tests.patches.image_api.

For the object store, an image is a container that has one object, its data: ``file``.
"""

from typing import Any

from tests.stores.http_server import Server

#: The object's name in each container.
OBJECT = "file"


class Cloud:
    """A cloud for programs, without its identity service.

    :param timeout: seconds that a request may wait for the next data; None for ever
    """

    def __init__(self, server: Server, timeout: float | None = None) -> None:
        import openstack

        self.url = server.url
        self.connection = openstack.connect(
            load_yaml_config=False, load_envvars=False, auth_type="none", endpoint=server.url, verify=False,
            api_timeout=timeout,
        )  # fmt: skip

    @property
    def object_store(self) -> Any:
        from openstack.object_store.v1 import _proxy

        return self._keeping(
            _proxy.Proxy(
                self.connection.session, service_type="object-store", endpoint_override=f"{self.url}/v2/images"
            )
        )

    @property
    def image(self) -> Any:
        from openstack.image.v2 import _proxy

        return self._keeping(
            _proxy.Proxy(self.connection.session, service_type="image", endpoint_override=f"{self.url}/v2")
        )

    def _keeping(self, proxy: Any) -> Any:
        # A proxy only refers weakly to the connection.
        proxy.connection_of_test = self.connection
        return proxy
