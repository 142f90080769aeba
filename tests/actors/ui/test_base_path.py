"""The application sees paths without the base path, wherever a proxy left it on."""

from forq_trio.ui.app import BasePath


async def test_the_base_path_is_removed_where_a_proxy_left_it_on():
    paths = []

    async def app(scope, receive, send) -> None:
        paths.append(scope["path"])

    for path in ("/forq/queue/a", "/queue/a", "/forq", "/forqs"):
        await BasePath(app, "/forq")({"type": "http", "path": path}, None, None)
    await BasePath(app, "")({"type": "http", "path": "/a"}, None, None)
    assert paths == ["/queue/a", "/queue/a", "/", "/forqs", "/a"]
