import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { findGo } from '../support/find-go.ts';

// Debian has no helm: Go's template engine, which helm uses, renders the chart here.

const CHART = resolve(import.meta.dirname, '../../deploy/helm/tollgate');
const read = (name: string) => readFileSync(join(CHART, name), 'utf8');
const OPTIONS = readFileSync(resolve(CHART, '../../../docs/reference/configuration.md'), 'utf8');

type Json = Readonly<Record<string, unknown>>;
interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Json;
}

const values = parse(read('values.yaml')) as Json;
const chart = parse(read('Chart.yaml')) as {
  readonly name: string;
  readonly version: string;
  readonly appVersion: string;
};

let work: string;
let renderer: string;
beforeAll(() => {
  const go = findGo();
  if (typeof go === 'string') throw new Error(go);
  work = mkdtempSync(join(tmpdir(), 'tollgate-chart-'));
  renderer = join(work, 'render');
  execFileSync(go.file, ['build', '-o', renderer, join(import.meta.dirname, 'render-chart/main.go')], {
    env: { ...go.env, GOCACHE: join(work, 'cache'), GO111MODULE: 'off' },
  });
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

function render(changes: Json = {}, { release = 'shop', appVersion = chart.appVersion } = {}) {
  const data = {
    Values: { ...values, ...changes },
    Chart: { Name: chart.name, Version: chart.version, AppVersion: appVersion },
    Release: { Name: release, Namespace: 'money', Service: 'Helm' },
  };
  const { status, stdout, stderr } = spawnSync(renderer, [], {
    input: JSON.stringify({ folder: CHART, data }),
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Readonly<Record<string, string>>;
}

function resourcesOf(changes?: Json, of: Parameters<typeof render>[1] = {}): readonly Resource[] {
  return Object.entries(render(changes, of))
    .filter(([name]) => name.endsWith('.yaml'))
    .flatMap(([, text]) => parseAllDocuments(text))
    .map((document) => {
      expect(document.errors).toEqual([]);
      return document.toJS() as Resource | null;
    })
    .filter((resource) => resource !== null);
}

const find = (kind: string, all: readonly Resource[]) => all.filter((one) => one.kind === kind);

/** The pod of the gateways. */
function podOf(all: readonly Resource[]) {
  const { template } = find('StatefulSet', all)[0]!.spec as {
    readonly template: { readonly metadata: Json; readonly spec: Json & { readonly containers: readonly Json[] } };
  };
  return { ...template, container: template.spec.containers[0]! };
}

describe('with its own values', () => {
  const all = () => resourcesOf();

  it('has two gateways that are not root, on a root that nothing writes', () => {
    expect((find('StatefulSet', all())[0]!.spec as { replicas: number }).replicas).toBe(2);
    const { spec, container } = podOf(all());
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 60,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(container['image']).toBe('tollgate:0.1.0');
    expect(container['securityContext']).toEqual({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'])
      expect(container[probe]).toMatchObject({
        httpGet: { path: expect.stringMatching(/^\/health\/(?:live|ready)$/) },
      });
  });

  it('is upgraded as the guide writes: by the version of the chart, one pod after the other', () => {
    const page = readFileSync(resolve(CHART, '../../../docs/run/upgrades.md'), 'utf8');
    const [, release, name] = /^helm upgrade (\w+) deploy\/helm\/tollgate .*\nkubectl .* statefulset\/(\S+)$/m.exec(
      page,
    )!;
    const next = resourcesOf({}, { release, appVersion: '0.2.0' });
    const [gateways] = find('StatefulSet', next);
    expect(gateways!.metadata.name).toBe(name);
    expect(podOf(next).container['image']).toBe('tollgate:0.2.0');
    // Kubernetes' own default: RollingUpdate.
    expect(gateways!.spec['updateStrategy']).toBeUndefined();
  });

  it('has every volume that is mounted, and names of the chart that select its pods', () => {
    const resources = all();
    const { spec, container, metadata } = podOf(resources);
    const claims = (find('StatefulSet', resources)[0]!.spec as { volumeClaimTemplates: readonly Resource[] })
      .volumeClaimTemplates;
    const there = [...(spec['volumes'] as readonly { name: string }[]), ...claims.map((claim) => claim.metadata)];
    expect((container['volumeMounts'] as readonly { name: string }[]).map(({ name }) => name).toSorted()).toEqual(
      there.map(({ name }) => name).toSorted(),
    );
    for (const { spec: service } of find('Service', resources))
      expect(metadata['labels']).toMatchObject(service['selector'] as Json);
    for (const { spec: budget } of find('PodDisruptionBudget', resources))
      expect(metadata['labels']).toMatchObject((budget['selector'] as { matchLabels: Json }).matchLabels);
    expect(resources.map(({ kind }) => kind).toSorted()).toEqual([
      'ConfigMap',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'Service',
      'Service',
      'ServiceAccount',
      'StatefulSet',
    ]);
  });

  it('gives the gateways variables that they read', () => {
    const names = (podOf(all()).container['env'] as readonly { name: string }[]).map(({ name }) => name);
    expect(names).toContain('TOLLGATE_CLUSTER_URL');
    expect(names).toContain('TOLLGATE_SHUTDOWN_DELAY_MS');
    for (const name of names.filter((each) => each !== 'POD_NAME')) expect(OPTIONS, name).toContain(`\`${name}\``);
  });
});

it('lets only gateways reach the port of gateways, and spreads the pods', () => {
  const all = resourcesOf({ networkPolicy: { enabled: true, clients: [{ podSelector: {} }] }, listenHost: '::' });
  const { metadata, spec, container } = podOf(all);
  const { podSelector, ingress } = find('NetworkPolicy', all)[0]!.spec as {
    readonly podSelector: { readonly matchLabels: Json };
    readonly ingress: readonly { readonly ports: readonly { port: string }[]; readonly from: readonly Json[] }[];
  };
  expect(metadata['labels']).toMatchObject(podSelector.matchLabels);
  expect(ingress.map(({ ports, from }) => [ports[0]!.port, from])).toEqual([
    ['http', [{ podSelector: {} }]],
    ['cluster', [{ podSelector }]],
  ]);
  for (const { ports } of ingress)
    expect(container['ports'] as readonly Json[]).toContainEqual(expect.objectContaining({ name: ports[0]!.port }));
  expect(spec['topologySpreadConstraints']).toMatchObject([
    { topologyKey: 'kubernetes.io/hostname', labelSelector: podSelector },
    { topologyKey: 'topology.kubernetes.io/zone' },
  ]);
  expect(container['env']).toEqual(
    expect.arrayContaining([
      { name: 'TOLLGATE_CLUSTER_URL', value: 'https://$(POD_NAME).shop-tollgate-pods:8403' },
      { name: 'TOLLGATE_CLUSTER_HOST', value: '::' },
      { name: 'HOST', value: '::' },
    ]),
  );
  expect(find('Service', all)[1]).toMatchObject({
    metadata: { name: 'shop-tollgate-pods' },
    spec: { publishNotReadyAddresses: true },
  });
  expect(find('NetworkPolicy', resourcesOf({ networkPolicy: { enabled: false, clients: [] } }))).toEqual([]);
});

it('has an ingress that waits as long as a call may take, and tells the gateway whom to trust', () => {
  const all = resourcesOf({
    ingress: { ...(values['ingress'] as Json), enabled: true, tlsSecret: 'gate-tls' },
    serviceMonitor: {
      enabled: true,
      interval: '15s',
      labels: { release: 'prometheus' },
      credentials: { name: 'scrape', key: 'read-key' },
    },
    trustedProxies: ['10.244.0.0/16', '10.1.0.0/16'],
    env: { TOLLGATE_S3_URL: 'https://s3.example/bucket' },
    data: { persistent: false },
    config: '[[models]]\nname = "a/b" # "quoted"\n',
  });
  const [ingress] = find('Ingress', all);
  expect(ingress!.metadata).toMatchObject({
    annotations: { 'nginx.ingress.kubernetes.io/proxy-read-timeout': '660' },
  });
  expect(ingress!.spec).toMatchObject({ tls: [{ hosts: ['gate.example.com'], secretName: 'gate-tls' }] });
  expect(find('ServiceMonitor', all).map(({ spec }) => spec['endpoints'])).toMatchObject([
    [{ authorization: { credentials: { name: 'scrape', key: 'read-key' } } }],
  ]);
  expect(podOf(all).container['env']).toEqual(
    expect.arrayContaining([
      { name: 'TOLLGATE_TRUSTED_PROXIES', value: '10.244.0.0/16,10.1.0.0/16' },
      { name: 'TOLLGATE_S3_URL', value: 'https://s3.example/bucket' },
    ]),
  );
  expect(find('ConfigMap', all)[0]).toMatchObject({
    data: { 'tollgate.toml': '[[models]]\nname = "a/b" # "quoted"\n' },
  });
  expect(find('StatefulSet', all)[0]!.spec).not.toHaveProperty('volumeClaimTemplates');
});

it('names what is missing', () => {
  expect(() => render({ existingSecret: '' })).toThrow('existingSecret names the Secret');
  expect(() => render({ publicUrl: '' })).toThrow('publicUrl is the address that clients use');
});

it('has a description of each value that is not plain, and the version of the release', () => {
  const { version } = JSON.parse(readFileSync(resolve(CHART, '../../../package.json'), 'utf8')) as { version: string };
  expect([chart.version, chart.appVersion]).toEqual([version, version]);
  const used = readdirSync(join(CHART, 'templates')).flatMap((name) => [
    ...read(`templates/${name}`).matchAll(/\.Values\.(\w+)/g),
  ]);
  for (const [, name] of used) expect(values).toHaveProperty(name!);
  for (const name of Object.keys(values)) expect(used.map(([, each]) => each)).toContain(name);
});
