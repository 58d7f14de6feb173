import { isObject, type JsonObject } from '#wire';
import type { Part, PartsEnd, PartsEvent, ReplyEnd } from '#gateway';
import type { Task } from '#tasks';
import { fromA2aParts, wordsOf } from './parts.ts';

/**
 * Tells what each event of a task adds to the answer: agents show their artifacts, messages and whole tasks more
 * than once.
 */
export interface AnswerTeller {
  /** An event of A2A 1.0, parsed. */
  tell(event: unknown): readonly PartsEvent[];
  /** What was held back and turned out to be part of the answer. To be called once, after the last event. */
  rest(): readonly PartsEvent[];
  /** How the answer ended. `error`: why it was broken off; null where it was not. */
  end(end: Pick<ReplyEnd, 'outcome'>, error: string | null): PartsEnd;
}

/**
 * How much of an artifact was told: characters of its text, its other parts, and the text itself while it is short
 * enough to be compared.
 */
interface Given {
  readonly chars: number;
  readonly others: number;
  readonly text: string;
}

/** `task`: the one that the message goes on with, as it was before; null for none. */
export function createAnswerTeller(task: Pick<Task, 'output'> | null): AnswerTeller {
  const told = new Set<string>();
  const given = new Map<string, Given>();
  let taskId: string | null = null;
  let contextId: string | null = null;
  let state = '';
  let said: string | null = null;
  const usage = { promptTokens: 0, completionTokens: 0 };
  /**
   * The first event of a follow-up, where it may be the task as it stood before: agents of the official SDKs begin
   * with that.
   */
  let held: JsonObject | null = null;
  let begun = false;
  /** Of which message or artifact the last part was. */
  let source = '';
  let afterText = false;
  let lineEnded = false;

  /** Parts of one message or artifact. Its text begins a line of its own. */
  const partsOf = (of: string, parts: readonly Part[]): PartsEvent[] =>
    parts.map((part) => {
      const apart = part.kind === 'text' && afterText && !lineEnded && source !== of;
      source = of;
      afterText = part.kind === 'text';
      if (part.kind !== 'text') return { type: 'part', part };
      lineEnded = part.text.endsWith('\n');
      return { type: 'part', part: apart ? { kind: 'text', text: `\n${part.text}` } : part };
    });
  const tellOnce = (messageId: unknown): boolean => {
    const key = nameOf(messageId);
    if (messageId !== undefined && told.has(key)) return false;
    if (told.size < TOLD_MAX) told.add(key);
    return true;
  };
  const note = (holder: JsonObject, id: unknown) => {
    if (typeof id === 'string') taskId = id;
    if (typeof holder['contextId'] === 'string') contextId = holder['contextId'];
    const metadata = holder['metadata'];
    const claim = isObject(metadata) ? metadata['tollgate/usage'] : undefined;
    if (!isObject(claim)) return;
    usage.promptTokens = countOf(claim['prompt'] ?? claim['prompt_tokens']);
    usage.completionTokens = countOf(claim['completion'] ?? claim['completion_tokens']);
  };
  /** Many agents say in their last message what is in their artifact already. */
  const repeats = (text: string): boolean => {
    const artifacts = [...given.values()].map((one) => one.text);
    return text.length < COMPARED_MAX && (artifacts.includes(text) || artifacts.join('\n') === text);
  };
  const statusOf = (status: unknown): PartsEvent[] => {
    if (!isObject(status)) return [];
    state = nameOf(status['state']);
    const message = isObject(status['message']) ? status['message'] : null;
    if (message === null || !tellOnce(message['messageId'])) return [];
    note({ metadata: message['metadata'] }, undefined);
    const parts = fromA2aParts(message['parts']);
    if (INTERRUPTED.has(state) || state === COMPLETED) {
      const repeated = parts.length > 0 && parts.every(({ kind }) => kind === 'text') && repeats(textOf(parts));
      return repeated ? [] : partsOf(`message ${nameOf(message['messageId'])}`, parts);
    }
    const text = wordsOf(parts);
    if (FAILED.has(state)) said = text;
    return [{ type: 'progress', text }];
  };
  /** `chunk`: a piece as it is streamed; else the artifact as it stands, of which what is new is told. */
  const artifactOf = (artifact: unknown, chunk: boolean, append: boolean): PartsEvent[] => {
    if (!isObject(artifact)) return [];
    const id = nameOf(artifact['artifactId']);
    const all = fromA2aParts(artifact['parts']);
    const before = given.get(id) ?? NOTHING_GIVEN;
    if (given.has(id) || given.size < TOLD_MAX) given.set(id, withParts(chunk && append ? before : NOTHING_GIVEN, all));
    return partsOf(`artifact ${id}`, chunk ? all : withoutGiven(all, before));
  };
  const artifactsOf = (shown: JsonObject): PartsEvent[] => {
    const artifacts: unknown = shown['artifacts'];
    return Array.isArray(artifacts) ? artifacts.flatMap((artifact: unknown) => artifactOf(artifact, false, false)) : [];
  };

  /**
   * What is held is old: it has been told with the answer before. What the task had not given by then is new all
   * the same.
   */
  const letGo = (): PartsEvent[] => {
    if (held === null) return [];
    const shown = held;
    held = null;
    const artifacts = artifactsOf(shown);
    const { message } = isObject(shown['status']) ? shown['status'] : {};
    if (isObject(message)) tellOnce(message['messageId']);
    if (task?.output !== true) return artifacts;
    afterText = false;
    return [];
  };

  const tell = (event: unknown): readonly PartsEvent[] => {
    if (!isObject(event)) return [];
    const first = !begun;
    begun = true;
    const before = letGo();
    const { message, task: shown, statusUpdate, artifactUpdate } = event;
    if (isObject(message)) {
      note(message, message['taskId']);
      return [...before, ...partsOf(`message ${nameOf(message['messageId'])}`, fromA2aParts(message['parts']))];
    }
    if (isObject(statusUpdate)) {
      note(statusUpdate, statusUpdate['taskId']);
      return [...before, ...statusOf(statusUpdate['status'])];
    }
    if (isObject(artifactUpdate)) {
      note(artifactUpdate, artifactUpdate['taskId']);
      return [...before, ...artifactOf(artifactUpdate['artifact'], true, artifactUpdate['append'] === true)];
    }
    if (!isObject(shown)) return before;
    note(shown, shown['id']);
    if (first && task !== null && !isOver(shown)) {
      held = shown;
      return before;
    }
    return [...before, ...artifactsOf(shown), ...statusOf(shown['status'])];
  };

  return {
    tell,
    rest() {
      const shown = held;
      held = null;
      return shown === null ? [] : [...artifactsOf(shown), ...statusOf(shown['status'])];
    },
    end({ outcome }, error) {
      const base = { taskId, contextId, ...usage };
      if (outcome === 'pending' && INTERRUPTED.has(state)) return { ...base, finish: 'input', error: null };
      if (outcome === 'complete') return { ...base, finish: 'stop', error: null };
      if (outcome === 'cut')
        return {
          ...base,
          finish: 'cut',
          error: error ?? said ?? "The agent's task was canceled. What it gave until then is charged",
        };
      return {
        ...base,
        finish: 'failed',
        error: error ?? said ?? `the agent's task is ${state.replace('TASK_STATE_', '').toLowerCase() || 'over'}`,
      };
    },
  };
}

const NOTHING_GIVEN: Given = { chars: 0, others: 0, text: '' };

function withParts({ chars, others, text }: Given, parts: readonly Part[]): Given {
  const more = textOf(parts);
  return {
    chars: chars + more.length,
    others: others + parts.filter(({ kind }) => kind !== 'text').length,
    text: chars + more.length < COMPARED_MAX ? text + more : '',
  };
}

const textOf = (parts: readonly Part[]): string =>
  parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');

/** The parts of an artifact that come after what was given of it. */
function withoutGiven(parts: readonly Part[], before: Given): readonly Part[] {
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

/** A task at its end is no task as it stood before: a message to that would have been refused. */
function isOver({ status }: JsonObject): boolean {
  const state = isObject(status) ? nameOf(status['state']) : '';
  return state === COMPLETED || FAILED.has(state);
}

/** A name that a stranger gave; nothing where it is none. */
const nameOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, NAME_CHARS_MAX) : '');
const NAME_CHARS_MAX = 256;
/** Messages and artifacts of one talk that are known to have been told. */
const TOLD_MAX = 20_000;
/** Characters of an artifact that is compared with the message at the end. */
const COMPARED_MAX = 16 * 1024;

const countOf = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
