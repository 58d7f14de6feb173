import fc from 'fast-check';
import { isInterrupted, isTerminal, stateName, TASK_STATES, type TaskState } from '../../../../src/a2a/wire/events.ts';

/*
 * Valid objects of both versions, without what docs/reference/mappings-a2a.md lists as lossy. `extras` adds a member
 * that no version knows, which must survive; the official SDK drops such members, so that comparisons with it leave
 * them out.
 */

type Shape = Record<string, fc.Arbitrary<unknown>>;

export interface Versions {
  readonly part: fc.Arbitrary<unknown>;
  readonly message: fc.Arbitrary<object>;
  readonly artifact: fc.Arbitrary<object>;
  readonly task: fc.Arbitrary<object>;
  readonly statusUpdate: fc.Arbitrary<object>;
  readonly artifactUpdate: fc.Arbitrary<object>;
  readonly event: fc.Arbitrary<object>;
  readonly sent: fc.Arbitrary<object>;
  readonly send: fc.Arbitrary<object>;
  readonly push: fc.Arbitrary<object>;
  readonly card: fc.Arbitrary<object>;
}

const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,11}$/);
const text = fc.string({ minLength: 1, maxLength: 20 });
const scalar = fc.oneof(fc.string({ maxLength: 8 }), fc.integer(), fc.boolean(), fc.constant(null));
const json = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.dictionary(word, scalar, { maxKeys: 3 }));
const plain = fc.dictionary(word, json, { maxKeys: 3 });
const metadata = fc.dictionary(word, json, { minKeys: 1, maxKeys: 3 });
const words = fc.array(word, { minLength: 1, maxLength: 3 });
const base64 = fc.uint8Array({ minLength: 1, maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const url = word.map((name) => `https://${name}.example/a`);
const timestamp = fc.constantFrom('2026-03-01T10:00:00.000Z', '2026-11-20T23:59:59.123Z');
const state = fc.constantFrom<TaskState>(...TASK_STATES);

export function versions({ extras }: { readonly extras: boolean }): {
  readonly '0.3': Versions;
  readonly '1.0': Versions;
} {
  const object = (required: Shape, optional: Shape = {}): fc.Arbitrary<Record<string, unknown>> =>
    fc.record(
      { ...required, ...optional, ...(extras ? { 'x-note': json } : {}) },
      { requiredKeys: Object.keys(required) as 'x-note'[] },
    );
  return { '0.3': legacy(object), '1.0': modern(object, extras) };
}

type ObjectOf = (required: Shape, optional?: Shape) => fc.Arbitrary<Record<string, unknown>>;

function modern(object: ObjectOf, extras: boolean): Versions {
  const described = { filename: text, mediaType: fc.constant('image/png') };
  const part = fc.oneof(
    object({ text: fc.string() }, { metadata, ...(extras ? described : {}) }),
    object({ raw: base64 }, { metadata, ...described }),
    object({ url }, { metadata, ...described }),
    // The SDK takes data that is null for no content, and refuses the part.
    object({ data: extras ? json : json.filter((one) => one !== null) }, { metadata, ...(extras ? described : {}) }),
  );
  const parts = fc.array(part, { minLength: 1, maxLength: 3 });
  const message = object(
    { messageId: word, role: fc.constantFrom('ROLE_USER', 'ROLE_AGENT'), parts },
    { contextId: word, taskId: word, metadata, extensions: words, referenceTaskIds: words },
  );
  const artifact = object({ artifactId: word, parts }, { name: text, description: text, metadata, extensions: words });
  const status = object({ state: state.map(stateName) }, { message, timestamp });
  const task = object(
    { id: word, contextId: word, status },
    {
      artifacts: fc.array(artifact, { minLength: 1, maxLength: 2 }),
      history: fc.array(message, { minLength: 1, maxLength: 2 }),
      metadata,
    },
  );
  const statusUpdate = object({ taskId: word, contextId: word, status }, { metadata });
  const artifactUpdate = object(
    { taskId: word, contextId: word, artifact, append: fc.boolean(), lastChunk: fc.boolean() },
    { metadata },
  );
  const authentication = object({ scheme: fc.constant('Bearer') }, { credentials: word });
  const inline = object({ url }, { id: word, token: word, authentication });
  const configuration = object(
    { returnImmediately: fc.boolean() },
    { acceptedOutputModes: words, historyLength: fc.nat(50), taskPushNotificationConfig: inline },
  );
  const requirement = fc.dictionary(
    word,
    fc.array(word, { maxLength: 2 }).map((list) => ({ list })),
    { minKeys: 1, maxKeys: 2 },
  );
  const securityRequirements = fc.array(fc.record({ schemes: requirement }), { minLength: 1, maxLength: 2 });
  const sent = fc.oneof(
    task.map((one) => ({ task: one })),
    message.map((one) => ({ message: one })),
  );
  return {
    part,
    message,
    artifact,
    task,
    statusUpdate,
    artifactUpdate,
    sent,
    event: fc.oneof(
      sent,
      statusUpdate.map((one) => ({ statusUpdate: one })),
      artifactUpdate.map((one) => ({ artifactUpdate: one })),
    ),
    send: object({ message, configuration }, { metadata }),
    push: object({ taskId: word, url }, { id: word, token: word, authentication }),
    card: object(
      {
        ...cardBasics,
        supportedInterfaces: fc
          .array(fc.record({ url, protocolBinding: fc.constantFrom('JSONRPC', 'HTTP+JSON') }), {
            minLength: 1,
            maxLength: 3,
          })
          .map((all) => all.map((one) => ({ ...one, protocolVersion: '0.3' }))),
        capabilities: object(
          { streaming: fc.boolean(), pushNotifications: fc.boolean() },
          { extendedAgentCard: fc.boolean() },
        ),
        skills: fc.array(object(skillBasics, { examples: words, securityRequirements }), {
          minLength: 1,
          maxLength: 2,
        }),
      },
      {
        ...cardOptions,
        securityRequirements,
        securitySchemes: fc.dictionary(
          word,
          schemes((type, inner) => ({ [SCHEME_MEMBERS[type]!]: inner }), 'location'),
          { minKeys: 1, maxKeys: 3 },
        ),
      },
    ),
  };
}

function legacy(object: ObjectOf): Versions {
  const kind = (name: string) => ({ kind: fc.constant(name) });
  const part = fc.oneof(
    object({ ...kind('text'), text: fc.string() }, { metadata }),
    object(
      { ...kind('file'), file: fc.record({ bytes: base64, mimeType: word, name: text }, { requiredKeys: ['bytes'] }) },
      { metadata },
    ),
    object(
      { ...kind('file'), file: fc.record({ uri: url, mimeType: word, name: text }, { requiredKeys: ['uri'] }) },
      { metadata },
    ),
    object({ ...kind('data'), data: plain }, { metadata }),
  );
  const parts = fc.array(part, { minLength: 1, maxLength: 3 });
  const message = object(
    { ...kind('message'), messageId: word, role: fc.constantFrom('user', 'agent'), parts },
    { contextId: word, taskId: word, metadata, extensions: words, referenceTaskIds: words },
  );
  const artifact = object({ artifactId: word, parts }, { name: text, description: text, metadata, extensions: words });
  const status = object({ state }, { message, timestamp });
  const task = object(
    { ...kind('task'), id: word, contextId: word, status },
    {
      artifacts: fc.array(artifact, { minLength: 1, maxLength: 2 }),
      history: fc.array(message, { minLength: 1, maxLength: 2 }),
      metadata,
    },
  );
  const statusUpdate = object({ ...kind('status-update'), taskId: word, contextId: word, status }, { metadata }).map(
    (one) => {
      const said = (one['status'] as { state: TaskState }).state;
      return { ...one, final: isTerminal(said) || isInterrupted(said) };
    },
  );
  const artifactUpdate = object(
    {
      ...kind('artifact-update'),
      taskId: word,
      contextId: word,
      artifact,
      append: fc.boolean(),
      lastChunk: fc.boolean(),
    },
    { metadata },
  );
  const authentication = object({ schemes: fc.constant(['Bearer']) }, { credentials: word });
  const inline = object({ url }, { id: word, token: word, authentication });
  const configuration = object(
    { blocking: fc.boolean(), acceptedOutputModes: words },
    { historyLength: fc.nat(50), pushNotificationConfig: inline },
  );
  const security = fc.array(fc.dictionary(word, fc.array(word, { maxLength: 2 }), { minKeys: 1, maxKeys: 2 }), {
    minLength: 1,
    maxLength: 2,
  });
  const sent = fc.oneof(task, message);
  return {
    part,
    message,
    artifact,
    task,
    statusUpdate,
    artifactUpdate,
    sent,
    event: fc.oneof(sent, statusUpdate, artifactUpdate),
    send: object({ message, configuration }, { metadata }),
    push: fc.record({ taskId: word, pushNotificationConfig: inline }),
    card: object(
      {
        ...cardBasics,
        protocolVersion: fc.constantFrom('0.3', '0.3.0'),
        url,
        preferredTransport: fc.constantFrom('JSONRPC', 'HTTP+JSON'),
        capabilities: object({ streaming: fc.boolean(), pushNotifications: fc.boolean() }),
        skills: fc.array(object(skillBasics, { examples: words, security }), { minLength: 1, maxLength: 2 }),
      },
      {
        ...cardOptions,
        security,
        supportsAuthenticatedExtendedCard: fc.boolean(),
        additionalInterfaces: fc.array(fc.record({ url, transport: fc.constantFrom('JSONRPC', 'HTTP+JSON') }), {
          minLength: 1,
          maxLength: 2,
        }),
        securitySchemes: fc.dictionary(
          word,
          schemes((type, inner) => ({ type, ...inner }), 'in'),
          { minKeys: 1, maxKeys: 3 },
        ),
      },
    ),
  };
}

const cardBasics = {
  name: text,
  description: text,
  version: fc.constant('1.2.3'),
  defaultInputModes: words,
  defaultOutputModes: words,
};
const cardOptions = { provider: fc.record({ url, organization: text }), documentationUrl: url, iconUrl: url };
const skillBasics = { id: word, name: text, description: text, tags: words };

const SCHEME_MEMBERS: Readonly<Record<string, string>> = {
  apiKey: 'apiKeySecurityScheme',
  http: 'httpAuthSecurityScheme',
  oauth2: 'oauth2SecurityScheme',
  openIdConnect: 'openIdConnectSecurityScheme',
  mutualTLS: 'mtlsSecurityScheme',
};

function schemes(wrap: (type: string, inner: object) => object, place: string): fc.Arbitrary<object> {
  const scopes = fc.dictionary(word, text, { minKeys: 1, maxKeys: 2 });
  const flow = fc.oneof(
    fc.record({ clientCredentials: fc.record({ tokenUrl: url, scopes }) }),
    fc.record({ implicit: fc.record({ authorizationUrl: url, scopes }) }),
    fc.record({ password: fc.record({ tokenUrl: url, refreshUrl: url, scopes }) }),
  );
  return fc.oneof(
    fc
      .record({ name: word, [place]: fc.constantFrom('header', 'query', 'cookie') })
      .map((inner) => wrap('apiKey', inner)),
    fc.record({ scheme: fc.constant('Bearer'), bearerFormat: fc.constant('JWT') }).map((inner) => wrap('http', inner)),
    fc.record({ flows: flow, description: text }).map((inner) => wrap('oauth2', inner)),
    fc.record({ openIdConnectUrl: url }).map((inner) => wrap('openIdConnect', inner)),
    fc.record({ description: text }).map((inner) => wrap('mutualTLS', inner)),
  );
}
