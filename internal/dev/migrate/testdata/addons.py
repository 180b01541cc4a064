import kopf, pathlib
import yaml

@kopf.on.create('addons.example.com', 'v1', 'manifests')
@kopf.on.update('addons.example.com', 'v1', 'manifests', field='spec')
def install(spec, name, namespace, labels, logger, body, **kwargs):
    text = pathlib.Path('deploy.yaml').read_text()
    doc = yaml.safe_load(text.format(name=name))
    kopf.adopt(doc)
    kopf.label(doc, {'app': name}, nested=['spec.template'])
    kopf.append_owner_reference(doc, owner=body)
    kopf.harmonize_naming(doc, name)
    kopf.adjust_namespace([doc], namespace)
    kopf.info(body, reason='Installed', message=f'{name} is installed.')
    api.create(doc)
    return {'children': [doc['metadata']['uid']]}

@kopf.on.delete('addons.example.com', 'v1', 'manifests')
def uninstall(body, name, **_):
    doc = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'data': {'name': name}}
    kopf.adopt(doc)
    kopf.event(body, type='Warning', reason='Going', message='It is going.')

@kopf.on.event('configmaps', annotations={'addons.example.com/for': kopf.PRESENT})
def config(name, **_):
    pass
