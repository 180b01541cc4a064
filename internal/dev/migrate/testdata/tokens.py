from typing import Any
import kopf
from kopf import Body, Patch

__all__ = ["create", "update"]

@kopf.on.create("auth.example.com", "v1alpha1", "servicetokens")
@kopf.on.update("auth.example.com", "v1alpha1", "servicetokens", field="spec")
@kopf.on.resume("auth.example.com", "v1alpha1", "servicetokens")
async def create(
    name: str | None,
    namespace: str | None,
    body: Body,
    memo: kopf.Memo,
    **_: Any,
) -> dict[str, int | str] | None:
    """Handle creation or modification of a token.

    Returns
    -------
    dict
        Something for the status.
    """
    if not name or not namespace:
        return None
    status = await memo.service.update(name, namespace, body)
    return status.to_dict() if status else None


@kopf.timer("auth.example.com", "v1alpha1", "servicetokens", interval=1800, initial_delay=1800, idle=1800)
async def periodic(name, namespace, body, memo, **_):
    result = await memo.service.check(name)


@kopf.on.startup()
async def startup(memo: kopf.Memo, **_: Any) -> None:
    memo.service = 1

@kopf.on.probe()
def alive(memo, **_):
    return 42
