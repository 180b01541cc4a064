import kopf
from typing import Dict

csecs: Dict[str, object] = {}

@kopf.on.delete('secrets.example.io', 'v1', 'clustersecrets')
def on_delete(body, meta, name, logger, **_):
    synced = body.get('status', {}).get('create_fn', {}).get('syncedns', [])
    for ns in synced:
        logger.info(f'deleting secret {name} from namespace {ns}')
        remove(ns, name)
    csecs.pop(meta['uid'], None)

@kopf.on.field('secrets.example.io', 'v1', 'clustersecrets', field='matchNamespace')
def on_field_match_namespace(old, new, name, body, uid, logger, **_):
    logger.debug(f'Namespaces changed: {old} -> {new}')

@kopf.on.field('secrets.example.io', 'v1', 'clustersecrets', field='data')
def on_field_data(old, new, body, meta, name, logger, **_):
    logger.debug(f"{name}: data changed")
    if old is None:
        logger.debug('This is a new object')
        return

@kopf.on.resume('secrets.example.io', 'v1', 'clustersecrets')
@kopf.on.create('secrets.example.io', 'v1', 'clustersecrets')
async def create_fn(logger, uid, name, body, **_):
    matched = get(body)
    return {'syncedns': matched}

@kopf.on.create('', 'v1', 'namespaces')
async def namespace_watcher(logger, meta, **_):
    logger.debug(f'New namespace created: {meta.name}')

@kopf.on.startup()
async def startup_fn(logger, **_):
    logger.debug("""
      #########################################################
      # DEBUG MODE ON - NOT FOR PROD
      #########################################################
    """)
