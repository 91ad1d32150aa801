"""`hubgate admin redirect`: former names of repos, listed and unlinked by the operator."""

from tests.bed.lean_http import LeanClient
from tests.bed.operator import Operator
from tests.bed.processes import hub_process


def test_operator_lists_and_unlinks_redirects(operator: Operator) -> None:
    with hub_process(operator.folder, "--deliver", "off", **operator.variables) as hub:
        operator.json("admin", "user", "create", "ada", "--email", "ada@example.org", "--verified")
        operator.json("admin", "user", "create", "bob", "--email", "bob@example.org", "--verified")
        operator.json("admin", "org", "create", "acme", "--owner", "ada")
        operator.json("admin", "org", "add-member", "acme", "bob", "--role", "admin")
        token = operator.json("admin", "token", "create", "ada", "--role", "write")["token"]
        with LeanClient(base_url=hub.url, headers={"authorization": f"Bearer {token}"}) as ada:
            for name in ("one", "two"):
                assert ada.post("/api/repos/create", json={"name": name, "private": True}).status_code == 200
                moved = {"fromRepo": f"ada/{name}", "toRepo": f"acme/{name}"}
                assert ada.post("/api/repos/move", json=moved).json()["redirect"] is True
            assert ada.post("/api/repos/move", json={"fromRepo": "acme/one", "toRepo": "acme/first"}).status_code == 200
        assert operator.json("admin", "redirect", "list", "acme") == [
            {
                "type": "model",
                "name": "acme/one",
                "target": "acme/first",
                "outside": False,
                "createdAt": operator.json("admin", "redirect", "list", "acme")[0]["createdAt"],
                "allowedBy": None,
            }
        ]
        found = operator.json("admin", "redirect", "list", "Ada")
        assert [(each["name"], each["target"], each["allowedBy"]) for each in found] == [
            ("ada/one", "acme/first", "ada"),
            ("ada/two", "acme/two", "ada"),
        ]
        done = operator.run("admin", "redirect", "unlink", "ada/ONE")
        assert (done.returncode, done.stdout) == (
            0,
            "ada/ONE no longer redirects. A new repo may use the name.\n",
        )
        assert "no redirect from the model ada/one" in operator.error_message("admin", "redirect", "unlink", "ada/one")
        assert "no redirect" in operator.error_message("admin", "redirect", "unlink", "ada/two", "--type", "dataset")
        assert operator.error_message("admin", "redirect", "list", "none") == "Namespace none not found."
        assert operator.error_message("admin", "redirect", "unlink", "ada") == "Name the redirect as NAMESPACE/REPO."
        # Of an account that is gone, too.
        operator.json("admin", "user", "delete", "ada")
        assert [each["name"] for each in operator.json("admin", "redirect", "list", "ada")] == ["ada/two"]
        operator.json("admin", "redirect", "unlink", "ada/two")
        assert operator.json("admin", "redirect", "list", "ada") == []
        assert hub.stop() == 0
