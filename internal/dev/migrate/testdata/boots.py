import kopf
from kopf import on, timer, TemporaryError, PermanentError

@on.create('boot.example.com', 'v1', 'boots')
@on.resume('boot.example.com', 'v1', 'boots')
async def created(body, logger, **kwargs):
    try:
        await go(body)
    except Exception as e:
        logger.error(f'failed: {e}')
        raise TemporaryError('again', delay=1) from e

@on.delete('boot.example.com', 'v1', 'boots')
async def removed(body, logger, **kwargs):
    raise PermanentError

@on.event('', 'v1', 'pods', labels={'boot': kopf.PRESENT})
def pod(event, **_):
    pass

@timer('boot.example.com', 'v1', 'boots', interval=30.0, idle=0)
async def check(spec, status, patch, **_):
    if status.get('state') == 'READY' and not spec.get('keep'):
        patch.status['state'] = 'STALE'
    elif spec.get('gefyra', {}).get('enabled'):
        patch.status['gefyra'] = {'port': spec['gefyra']['port'], 'names': ['a', 'b']}
    else:
        patch.status['old'] = None

@on.validate('boot.example.com', 'v1', 'boots', persistent=True, side_effects=False)
def check_parameters(body, spec, **_):
    limit = spec['limit']
    if limit is None:
        raise kopf.AdmissionError('no limit')
