import kopf as k

@k.on.startup()
def start(settings: k.OperatorSettings, **_):
    settings.persistence.progress_storage = k.StatusProgressStorage(name='governor')
    settings.persistence.diffbase_storage = k.StatusDiffBaseStorage(name='governor')
    settings.queueing.worker_limit = 4
    settings.watching.client_timeout = 3600

@k.on.cleanup(id='stop')
def stop_all(**_):
    shutdown()

@k.on.create('gov.example.com', 'v1', 'subjects')
@k.on.resume('gov.example.com', 'v1', 'subjects')
@k.on.update('gov.example.com', 'v1', 'subjects')
def subject(body, logger, **_):
    logger.exception("not yet")

@k.on.event('gov.example.com', 'v1', 'actions', labels={'gov.example.com/runner': ''})
def action_event(event, **_):
    print("seen")

@k.daemon('gov.example.com', 'v1', 'actions', retries=3)
def run_action(spec, stopped, **_):
    if 'callback' in spec and spec['callback'] != 'none':
        return
    raise k.TemporaryError("waiting", 30)
