# -*- coding: utf-8 -*-
import kopf

from openstack_operator import utils

API_VERSION = 'apps.example.com/v1alpha1'

@kopf.on.resume(API_VERSION, 'memcacheds')
@kopf.on.create(API_VERSION, 'memcacheds')
def create_or_resume(name, spec, **_):
    """Create the pieces."""
    utils.create_or_update('memcached/deployment.yml.j2', name=name, spec=spec)

@kopf.on.update(API_VERSION, 'memcacheds')
def update(name, spec, **_):
    utils.create_or_update('memcached/deployment.yml.j2',
                           name=name,
                           spec=spec)

@kopf.on.delete(API_VERSION, 'memcacheds')
def delete_fn(name, **_):
	utils.delete("x")  # a tab

@kopf.timer(API_VERSION, 'rabbitmqs', interval=timeout())
def poll(**_):
    pass

@kopf.on.event('apps.example.com', 'v1alpha1', 'memcacheds')
def event(event, **_):
    pass
