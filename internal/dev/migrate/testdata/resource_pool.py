import asyncio
import os
import kopf

domain = os.environ.get('OPERATOR_DOMAIN', 'pool.example.com')
version = os.environ.get('OPERATOR_VERSION', 'v1')

@kopf.on.startup()
async def startup(logger, settings, **_):
    settings.persistence.finalizer = domain
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=domain)
    settings.scanning.disabled = True
    settings.posting.level = logging.ERROR
    await connect()

@kopf.on.create(domain, version, 'claims', id='claim_create', label_selector='!pool.example.com/ignore')
async def claim_create(annotations, labels, meta, name, namespace, spec, status, uid, logger, **_):
    claim = Claim.load(annotations, labels, meta, name, namespace, spec, status, uid)
    await claim.handle_create(logger=logger)

@kopf.on.update(domain, version, 'claims', id='claim_update', label_selector='!pool.example.com/ignore')
async def claim_update(**kwargs):
    await handle(**kwargs)

@kopf.on.delete(domain, version, 'claims', label_selector='!pool.example.com/ignore')
async def claim_delete(name, logger, **_):
    logger.info(f"Deleting {name}")

@kopf.on.event(domain, version, 'providers')
async def provider_event(event, **_):
    await cache(event)

@kopf.daemon(domain, version, 'claims', cancellation_timeout=1, initial_delay=lambda **_: 3)
async def claim_daemon(stopped, logger, **_):
    try:
        while not stopped:
            await asyncio.sleep(60)
    except asyncio.CancelledError:
        pass
