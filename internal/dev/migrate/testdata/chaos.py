import kopf

@kopf.on.create('chaos.example.org', 'v1', 'experiments')
async def create_experiment(meta, body, spec, namespace, logger, **kwargs):
    ns = spec.get("namespace", "chaos-run")
    k8s = client()
    suffix = generate()
    @kopf.subhandler(id=f'pod-{suffix}')
    async def pod(**_):
        pass
    @kopf.subhandler()
    def plain(**_):
        pass
    lambda_handler = lambda **_: None

@kopf.on.delete('chaos.example.org', 'v1', 'experiments', id='drop_with_a_name_that_is_longer_than_the_sixty_three_characters_of_annotations')
async def delete_experiment(body, **_):
    raise ValueError

@kopf.on.update('chaos.example.org', 'v1', 'experiments', backoff=0.5, retries=3, timeout=60)
def func(old, new, **_): pass

@kopf.on.update('chaos.example.org', 'v1', 'experiments', field='spec.image', old='a', new='b')
def type(old, new, **_): return new
