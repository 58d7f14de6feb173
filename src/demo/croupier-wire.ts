import type { GamePart } from './croupier-game.ts';
import { rests, type Task, type TaskEvent } from './croupier-tasks.ts';

type JsonObject = Readonly<Record<string, unknown>>;

export type WireVersion = '0.3' | '1.0';
export type Operation = 'send' | 'stream' | 'get' | 'cancel' | 'subscribe' | 'push' | 'other';

/** Methods of A2A 0.3 and 1.0 on JSON-RPC. No name stands in both. */
const METHODS: ReadonlyMap<string, readonly [WireVersion, Operation]> = new Map([
  ['message/send', ['0.3', 'send']],
  ['message/stream', ['0.3', 'stream']],
  ['tasks/get', ['0.3', 'get']],
  ['tasks/cancel', ['0.3', 'cancel']],
  ['tasks/resubscribe', ['0.3', 'subscribe']],
  ['tasks/pushNotificationConfig/set', ['0.3', 'push']],
  ['tasks/pushNotificationConfig/get', ['0.3', 'push']],
  ['tasks/pushNotificationConfig/list', ['0.3', 'push']],
  ['tasks/pushNotificationConfig/delete', ['0.3', 'push']],
  ['agent/getAuthenticatedExtendedCard', ['0.3', 'other']],
  ['SendMessage', ['1.0', 'send']],
  ['SendStreamingMessage', ['1.0', 'stream']],
  ['GetTask', ['1.0', 'get']],
  ['CancelTask', ['1.0', 'cancel']],
  ['SubscribeToTask', ['1.0', 'subscribe']],
  ['CreateTaskPushNotificationConfig', ['1.0', 'push']],
  ['GetTaskPushNotificationConfig', ['1.0', 'push']],
  ['ListTaskPushNotificationConfigs', ['1.0', 'push']],
  ['DeleteTaskPushNotificationConfig', ['1.0', 'push']],
  ['ListTasks', ['1.0', 'other']],
  ['GetExtendedAgentCard', ['1.0', 'other']],
]);

/** The version and the operation of a method; null for a name that is none. */
export function readMethod(name: unknown): { readonly version: WireVersion; readonly operation: Operation } | null {
  const found = typeof name === 'string' ? METHODS.get(name) : undefined;
  return found ? { version: found[0], operation: found[1] } : null;
}

/** A task as a version writes it. `inner`: as the result of a send or an event of a stream, which 1.0 puts into a wrapper. */
export function writeTask(version: WireVersion, task: Task, inner: boolean): JsonObject {
  const { id, contextId, parts } = task;
  const artifacts = parts.length === 0 ? [] : [artifactOf(version, parts)];
  const written = { ...kindOf(version, 'task'), id, contextId, status: statusOf(version, task), ...(artifacts.length > 0 ? { artifacts } : {}) };
  return version === '1.0' && inner ? { task: written } : written;
}

/** An event of a stream. */
export function writeEvent(version: WireVersion, event: TaskEvent): JsonObject {
  const { id: taskId, contextId } = event.task;
  if (event.kind === 'status') {
    const update = { taskId, contextId, status: statusOf(version, event.task) };
    return version === '1.0' ? { statusUpdate: update } : { kind: 'status-update', ...update, final: rests(event.task) };
  }
  const { parts, append, last: lastChunk } = event;
  const update = { taskId, contextId, artifact: artifactOf(version, parts), append, lastChunk };
  return version === '1.0' ? { artifactUpdate: update } : { kind: 'artifact-update', ...update };
}

const artifactOf = (version: WireVersion, parts: readonly GamePart[]): JsonObject => ({
  artifactId: 'roll',
  name: 'roll',
  parts: parts.map((part) => writePart(version, part)),
});

function writePart(version: WireVersion, part: GamePart): JsonObject {
  if ('text' in part) return { ...kindOf(version, 'text'), text: part.text };
  return { ...kindOf(version, 'data'), data: part.data, ...(version === '1.0' ? { mediaType: 'application/json' } : {}) };
}

function statusOf(version: WireVersion, { id: taskId, contextId, state, words, turn, since: timestamp }: Task): JsonObject {
  const said = version === '1.0' ? `TASK_STATE_${state.toUpperCase().replace('-', '_')}` : state;
  if (words === null) return { state: said, timestamp };
  const message = {
    ...kindOf(version, 'message'),
    messageId: `${taskId}-${turn}`,
    taskId,
    contextId,
    role: version === '1.0' ? 'ROLE_AGENT' : 'agent',
    parts: [writePart(version, { text: words })],
  };
  return { state: said, timestamp, message };
}

const kindOf = (version: WireVersion, kind: string): JsonObject => (version === '0.3' ? { kind } : {});
