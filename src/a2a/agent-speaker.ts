import { randomUUID } from 'node:crypto';
import {
  pinned,
  encodePartsEvent,
  GatewayError,
  isObject,
  NO_PREFERENCES,
  ownerOf,
  type Call,
  type Catalog,
  type JsonObject,
  type Part,
  type PartsAsk,
  type PartsEnd,
  type PartsEvent,
  type ReplyEnd,
  type Speaker,
  type Tasks,
} from '#gateway';
import type { A2aTail } from './ending.ts';
import { fromA2aParts, toA2aPart } from './parts.ts';
import { lastInContext } from './context-of.ts';
import { followUpOf } from './follow-up.ts';
import { resolveAgent } from './resolve.ts';
import { createSendTalk, type SendTalkDeps } from './send-talk.ts';
import { keyOf, versionIn } from './tasks-of-agents.ts';

export interface AgentSpeakerDeps extends SendTalkDeps {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers' | 'knows'>;
  readonly tasks: Tasks;
}

/** An agent spoken to in parts, as other protocols' doors do: a message to it, and what its task says until it ends or asks for something. */
export function createAgentSpeaker(deps: AgentSpeakerDeps): Speaker {
  const { catalog, tasks } = deps;
  return {
    primitive: 'agent',
    has: (name) => catalog.knows(name, 'agent'),
    list(limit) {
      const found = new Map<string, { name: string; displayName: string; description: string }>();
      for (const { service, displayName, description } of catalog.offers('agent')) {
        const known = found.get(service);
        if (!known || (known.description === '' && description !== '')) found.set(service, { name: service, displayName, description });
      }
      return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, limit);
    },
    async toCall(name, ask, { caller, requestId, traceparent, wantsReceipt }) {
      const { service } = resolveAgent(catalog, name);
      const task = ask.taskId === null ? null : await tasks.find(keyOf(service, ask.taskId), ownerOf(caller));
      if (ask.taskId !== null && task === null) throw new GatewayError('invalid_request', 'There is no such task', { param: 'task_id' });
      const last = task ?? (await lastInContext(tasks, caller, service, ask.contextId));
      const params = { message: messageOf(ask) };
      const covered = task !== null && followUpOf(catalog, task) === 'covered';
      const talk = createSendTalk(deps, {
        contextId: ask.contextId,
        operation: 'stream',
        version: '1.0',
        params,
        paramsText: JSON.stringify(params),
        requestId,
        extensions: null,
        taskId: ask.taskId,
        begunIn: task === null ? null : versionIn(task.notes),
        later: task?.live === true,
        covered,
        waits: true,
        pushes: false,
      });
      return {
        primitive: 'agent',
        caller,
        requestId,
        targets: [last === null ? name : pinned(last.offerId)],
        preferences: NO_PREFERENCES,
        stickyKey: ask.contextId === null ? null : `${caller.account} a2a ${ask.contextId}`,
        images: 0,
        stream: ask.stream,
        exchange: {
          begin: (call: Call) => talk.begin!(call),
          resolved: (state) => talk.resolved!(state),
          converse: (offer, send, signal, detached) => inParts(talk.converse(offer, send, signal, detached)),
        },
        free: covered ? 'message/send' : null,
        estimate: ({ priceCap }) => (priceCap !== null && !task?.live ? { costMax: priceCap } : { call: 1n }),
        metadata: null,
        traceparent,
        wantsReceipt,
        // An agent does not hear that whoever asked has left.
        outlivesClient: true,
      };
    },
  };
}

/** What was said before goes in front, as text: an agent has no memory of what another told. One that goes on with a context or a task has. */
function messageOf({ turns, contextId, taskId }: PartsAsk): JsonObject {
  const last = turns.at(-1)!;
  const before = contextId === null && taskId === null ? turns.slice(0, -1) : [];
  const said = before.map(({ role, parts }) => `${role}: ${parts.map(textOf).join(' ')}`).join('\n');
  const parts: Part[] = [...(said === '' ? [] : [{ kind: 'text' as const, text: `The conversation so far:\n${said}\n\nNow:` }]), ...last.parts];
  return {
    messageId: randomUUID(),
    role: 'ROLE_USER',
    parts: parts.map(toA2aPart),
    ...(contextId === null ? {} : { contextId }),
    ...(taskId === null ? {} : { taskId }),
  };
}

function textOf(part: Part): string {
  if (part.kind === 'text') return part.text;
  return part.kind === 'data' ? JSON.stringify(part.data) : `[${part.name ?? part.mediaType ?? 'file'}]`;
}

/** The events of a talk in 1.0 as parts, and its tail as a PartsEnd. */
async function* inParts(talk: AsyncGenerator<Uint8Array, ReplyEnd, undefined>): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
  const teller = createTeller();
  for (;;) {
    const step = await talk.next();
    if (step.done) {
      const { tail, ...end } = step.value;
      const { text, error, cut } = tail as A2aTail;
      if (text !== null) for (const event of teller.tell(JSON.parse(text))) yield encodePartsEvent(event);
      return { ...end, tail: teller.end(end, error?.message ?? cut) };
    }
    for (const event of teller.tell(JSON.parse(Buffer.from(step.value).toString()))) yield encodePartsEvent(event);
  }
}

/** Tells what is new in each event: a task that ends shows once more what was streamed before. */
function createTeller() {
  const told = new Set<string>();
  const tellOnce = (key: string) => {
    if (told.size < TOLD_MAX) told.add(key);
  };
  /** How much of each artifact was told: characters of its text, and its other parts. */
  const given = new Map<string, { readonly chars: number; readonly others: number }>();
  let taskId: string | null = null;
  let contextId: string | null = null;
  let state = '';
  let said: string | null = null;
  const usage = { promptTokens: 0, completionTokens: 0 };

  const parts = (of: unknown): PartsEvent[] => fromA2aParts(of).map((part) => ({ type: 'part', part }));
  const note = (holder: JsonObject, id: unknown) => {
    if (typeof id === 'string') taskId = id;
    if (typeof holder['contextId'] === 'string') contextId = holder['contextId'];
    const metadata = holder['metadata'];
    const claim = isObject(metadata) ? metadata['tollgate/usage'] : undefined;
    if (!isObject(claim)) return;
    usage.promptTokens = countOf(claim['prompt'] ?? claim['prompt_tokens']);
    usage.completionTokens = countOf(claim['completion'] ?? claim['completion_tokens']);
  };
  const statusOf = (status: unknown): PartsEvent[] => {
    if (!isObject(status)) return [];
    state = nameOf(status['state']);
    const message = isObject(status['message']) ? status['message'] : null;
    if (message === null) return [];
    const key = message['messageId'];
    if (key !== undefined && told.has(`message ${nameOf(key)}`)) return [];
    tellOnce(`message ${nameOf(key)}`);
    note({ metadata: message['metadata'] }, undefined);
    const words = fromA2aParts(message['parts']);
    const text = words.map(textOf).join(' ');
    if (INTERRUPTED.has(state) || state === COMPLETED) return words.map((part) => ({ type: 'part', part }));
    if (FAILED.has(state)) said = text;
    return [{ type: 'progress', text }];
  };
  /** `chunk`: a piece as it is streamed; else the artifact as it stands, of which what is new is told. */
  const artifactOf = (artifact: unknown, chunk: boolean, append: boolean): PartsEvent[] => {
    if (!isObject(artifact)) return [];
    const id = nameOf(artifact['artifactId']);
    const all = fromA2aParts(artifact['parts']);
    const before = given.get(id) ?? NOTHING_GIVEN;
    const size = sizeOf(all);
    const now = chunk && append ? { chars: before.chars + size.chars, others: before.others + size.others } : size;
    if (given.has(id) || given.size < TOLD_MAX) given.set(id, now);
    return (chunk ? all : withoutGiven(all, before)).map((part) => ({ type: 'part', part }));
  };

  return {
    tell(event: unknown): readonly PartsEvent[] {
      if (!isObject(event)) return [];
      const { message, task, statusUpdate, artifactUpdate } = event;
      if (isObject(message)) {
        note(message, message['taskId']);
        return parts(message['parts']);
      }
      if (isObject(statusUpdate)) {
        note(statusUpdate, statusUpdate['taskId']);
        return statusOf(statusUpdate['status']);
      }
      if (isObject(artifactUpdate)) {
        note(artifactUpdate, artifactUpdate['taskId']);
        return artifactOf(artifactUpdate['artifact'], true, artifactUpdate['append'] === true);
      }
      if (!isObject(task)) return [];
      note(task, task['id']);
      const artifacts = Array.isArray(task['artifacts']) ? task['artifacts'] : [];
      return [...artifacts.flatMap((artifact: unknown) => artifactOf(artifact, false, false)), ...statusOf(task['status'])];
    },
    end({ outcome }: Pick<ReplyEnd, 'outcome'>, error: string | null): PartsEnd {
      const base = { taskId, contextId, ...usage };
      if (outcome === 'pending' && INTERRUPTED.has(state)) return { ...base, finish: 'input', error: null };
      if (outcome === 'complete') return { ...base, finish: 'stop', error: null };
      if (outcome === 'cut')
        return { ...base, finish: 'cut', error: error ?? said ?? "The agent's task was canceled. What it gave until then is charged" };
      return { ...base, finish: 'failed', error: error ?? said ?? `the agent's task is ${state.replace('TASK_STATE_', '').toLowerCase() || 'over'}` };
    },
  };
}

const NOTHING_GIVEN = { chars: 0, others: 0 } as const;

function sizeOf(parts: readonly Part[]): { readonly chars: number; readonly others: number } {
  let [chars, others] = [0, 0];
  for (const part of parts) {
    if (part.kind === 'text') chars += part.text.length;
    else others += 1;
  }
  return { chars, others };
}

/** The parts of an artifact that come after what was given of it. */
function withoutGiven(parts: readonly Part[], before: { readonly chars: number; readonly others: number }): readonly Part[] {
  let { chars, others } = before;
  return parts.flatMap((part): Part[] => {
    if (part.kind !== 'text') return others-- > 0 ? [] : [part];
    const text = part.text.slice(chars);
    chars = Math.max(0, chars - part.text.length);
    return text === '' ? [] : [{ ...part, text }];
  });
}

const COMPLETED = 'TASK_STATE_COMPLETED';
const INTERRUPTED: ReadonlySet<string> = new Set(['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED']);
const FAILED: ReadonlySet<string> = new Set(['TASK_STATE_FAILED', 'TASK_STATE_REJECTED', 'TASK_STATE_CANCELED']);

/** A name that a stranger gave; nothing where it is none. */
const nameOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, NAME_CHARS_MAX) : '');
const NAME_CHARS_MAX = 256;
/** Messages and artifacts of one talk that are known to have been told. */
const TOLD_MAX = 20_000;

const countOf = (value: unknown): number => (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0);
