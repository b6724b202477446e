"""The datastore of VMware's backend: what glance_store's driver does not ask for by itself."""

import requests


def test_a_file_needs_the_cookie_of_the_session(usable, tmp_path):
    with usable("vmware")(tmp_path) as running:
        access = running.access()
        own = {"verify": access["certificate"], "timeout": 60}
        url = f"{access['url']}/images/one?dcPath=datacenter&dsName=datastore"
        for method in ("GET", "PUT", "DELETE"):
            assert requests.request(method, url, data=b"data", **own).status_code == 401
        own["headers"] = {"Cookie": access["cookie"]}
        assert requests.get(url, **own).status_code == 404
        assert requests.put(url, data=iter([b"da", b"ta"]), **own).status_code == 201
        assert requests.get(url, **own).content == b"data"
        assert requests.delete(url, **own).status_code == 204
        assert requests.delete(url, **own).status_code == 404
