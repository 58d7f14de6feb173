import { isObject, type JsonObject } from '#wire';
import { type CallEvent, type ContentResult, eventOf, type Part } from '#bridge';
import type { ReplyEnd } from '#call';
import type { Task } from '#tasks';
import { fromA2aParts, wordsOf } from './parts.ts';
import { USAGE_KEY, isInterrupted, isTerminal, stateOf, type TaskState } from '../wire/events.ts';

/** Reads the events of a task as one answer, without the artifacts, messages and tasks that agents repeat. */
export interface AnswerReader {
  /** Takes a parsed event of A2A 1.0. Returns what it adds to the answer. */
  read(event: unknown): readonly CallEvent[];
  /** Returns the events that were held back and belong to the answer. Call it once, after the last event. */
  rest(): readonly CallEvent[];
  /** The end of the answer. `error`: the reason why it broke off; null if it did not. */
  end(end: Pick<ReplyEnd, 'outcome'>, error: string | null): ContentResult;
}

/** `task`: the task that the message continues, in its state before the message; null for none. */
export function createAnswerReader(task: Pick<Task, 'output'> | null): AnswerReader {
  const artifacts = createShownArtifacts();
  const lines = createPartLines();
  const messageIds = new Set<string>();
  const facts = createTaskFacts();
  let state: TaskState = 'unknown';
  let failure: string | null = null;
  /**
   * The first event of a follow-up is held back, because it may be the task in its state before the message. Agents of
   * the official SDKs begin with it.
   */
  let held: JsonObject | null = null;
  let begun = false;

  function isNewMessage(messageId: unknown): boolean {
    const id = boundedName(messageId);
    if (messageId !== undefined && messageIds.has(id)) return false;
    if (messageIds.size < REMEMBERED_MAX) messageIds.add(id);
    return true;
  }

  function readStatus(status: unknown): CallEvent[] {
    if (!isObject(status)) return [];
    state = stateOf(status['state']);
    const message = isObject(status['message']) ? status['message'] : null;
    if (message === null || !isNewMessage(message['messageId'])) return [];
    facts.take({ metadata: message['metadata'] }, undefined);
    const parts = fromA2aParts(message['parts']);
    if (isInterrupted(state) || state === 'completed') {
      // Many agents repeat the text of their artifact in their last message.
      const repeated =
        parts.length > 0 && parts.every(({ kind }) => kind === 'text') && artifacts.repeats(textOf(parts));
      return repeated ? [] : lines.textOf(`message ${boundedName(message['messageId'])}`, parts);
    }
    const text = wordsOf(parts);
    if (isTerminal(state)) failure = text;
    return [{ type: 'progress', text }];
  }

  const readArtifact = (added: NewParts | null): CallEvent[] =>
    added === null ? [] : lines.textOf(`artifact ${added.artifactId}`, added.parts);

  function readArtifacts(content: JsonObject): CallEvent[] {
    const all: unknown = content['artifacts'];
    return Array.isArray(all) ? all.flatMap((artifact: unknown) => readArtifact(artifacts.whole(artifact))) : [];
  }

  /**
   * Skips the held task, because the answer before already had it. Its artifacts are new only if the task had no output
   * before.
   */
  function skipHeld(): CallEvent[] {
    if (held === null) return [];
    const heldTask = held;
    held = null;
    const added = readArtifacts(heldTask);
    const { message } = isObject(heldTask['status']) ? heldTask['status'] : {};
    if (isObject(message)) isNewMessage(message['messageId']);
    if (task?.output !== true) return added;
    lines.restart();
    return [];
  }

  return {
    read(event) {
      if (!isObject(event)) return [];
      const first = !begun;
      begun = true;
      const before = skipHeld();
      const { message, task: taskEvent, statusUpdate, artifactUpdate } = event;
      if (isObject(message)) {
        facts.take(message, message['taskId']);
        return [
          ...before,
          ...lines.textOf(`message ${boundedName(message['messageId'])}`, fromA2aParts(message['parts'])),
        ];
      }
      if (isObject(statusUpdate)) {
        facts.take(statusUpdate, statusUpdate['taskId']);
        return [...before, ...readStatus(statusUpdate['status'])];
      }
      if (isObject(artifactUpdate)) {
        facts.take(artifactUpdate, artifactUpdate['taskId']);
        const { artifact, append } = artifactUpdate;
        return [...before, ...readArtifact(artifacts.piece(artifact, append === true))];
      }
      if (!isObject(taskEvent)) return before;
      facts.take(taskEvent, taskEvent['id']);
      if (first && task !== null && !isOver(taskEvent)) {
        held = taskEvent;
        return before;
      }
      return [...before, ...readArtifacts(taskEvent), ...readStatus(taskEvent['status'])];
    },
    rest() {
      const heldTask = held;
      held = null;
      return heldTask === null ? [] : [...readArtifacts(heldTask), ...readStatus(heldTask['status'])];
    },
    end({ outcome }, error) {
      const base = facts.all();
      if (outcome === 'pending' && isInterrupted(state)) return { ...base, finish: 'input', error: null };
      if (outcome === 'complete') return { ...base, finish: 'stop', error: null };
      const reason = error ?? failure;
      if (outcome === 'cut') return { ...base, finish: 'cut', error: reason ?? CANCELED };
      return {
        ...base,
        finish: 'failed',
        error: reason ?? `the agent's task is ${state === 'unknown' ? 'over' : state}`,
      };
    },
  };
}

const CANCELED = "The agent's task was canceled. Its output until then is charged";

/** Whether the task has ended. Such a task is no earlier state, because the agent would have refused to continue it. */
const isOver = ({ status }: JsonObject): boolean => isObject(status) && isTerminal(stateOf(status['state']));

/** The ids and the usage of a task. The latest values count. */
function createTaskFacts() {
  let taskId: string | null = null;
  let contextId: string | null = null;
  let promptTokens = 0;
  let completionTokens = 0;
  return {
    take(holder: JsonObject, id: unknown): void {
      if (typeof id === 'string') taskId = id;
      if (typeof holder['contextId'] === 'string') contextId = holder['contextId'];
      const metadata = holder['metadata'];
      const claim = isObject(metadata) ? metadata[USAGE_KEY] : undefined;
      if (!isObject(claim)) return;
      promptTokens = countOf(claim['prompt'] ?? claim['prompt_tokens']);
      completionTokens = countOf(claim['completion'] ?? claim['completion_tokens']);
    },
    all: () => ({ taskId, contextId, promptTokens, completionTokens }),
  };
}

const countOf = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;

/** Turns parts into events. The text of each message and artifact begins on a new line. */
function createPartLines() {
  let source = '';
  let afterText = false;
  let lineEnded = false;
  return {
    textOf: (from: string, parts: readonly Part[]): CallEvent[] =>
      parts.map((part) => {
        const apart = part.kind === 'text' && afterText && !lineEnded && source !== from;
        source = from;
        afterText = part.kind === 'text';
        if (part.kind === 'text') lineEnded = part.text.endsWith('\n');
        // An answer that is one empty text must not become an answer without any part.
        return eventOf(apart ? { kind: 'text', text: `\n${part.text}` } : part);
      }),
    restart(): void {
      afterText = false;
    },
  };
}

/** The artifacts of one answer. Agents repeat them: as a whole, in pieces, and as the text of the last message. */
interface ShownArtifacts {
  /** Takes a streamed piece of an artifact. Returns its parts. `append`: it continues the piece before. */
  piece(artifact: unknown, append: boolean): NewParts | null;
  /** Takes a complete artifact. Returns the parts that are new. */
  whole(artifact: unknown): NewParts | null;
  /** Whether `text` is the text of one artifact, or of all artifacts together. */
  repeats(text: string): boolean;
}

interface NewParts {
  readonly artifactId: string;
  readonly parts: readonly Part[];
}

interface ShownParts {
  /** Characters of text. */
  readonly chars: number;
  readonly others: number;
  /** The text; empty if it is too long to be compared. */
  readonly text: string;
}

const NOTHING: ShownParts = { chars: 0, others: 0, text: '' };
/** The longest artifact, in characters, that is compared with the last message. */
const COMPARED_MAX = 16 * 1024;
const REMEMBERED_MAX = 20_000;
const NAME_CHARS_MAX = 256;

function createShownArtifacts(): ShownArtifacts {
  const artifacts = new Map<string, ShownParts>();

  function take(artifact: JsonObject, append: boolean): NewParts & { readonly before: ShownParts } {
    const artifactId = boundedName(artifact['artifactId']);
    const parts = fromA2aParts(artifact['parts']);
    const before = artifacts.get(artifactId) ?? NOTHING;
    if (artifacts.has(artifactId) || artifacts.size < REMEMBERED_MAX)
      artifacts.set(artifactId, withParts(append ? before : NOTHING, parts));
    return { artifactId, parts, before };
  }

  return {
    piece: (artifact, append) => (isObject(artifact) ? take(artifact, append) : null),
    whole(artifact) {
      if (!isObject(artifact)) return null;
      const { artifactId, parts, before } = take(artifact, false);
      return { artifactId, parts: withoutShown(parts, before) };
    },
    repeats(text) {
      if (text.length >= COMPARED_MAX) return false;
      const texts = [...artifacts.values()].map((one) => one.text);
      return texts.includes(text) || texts.join('\n') === text;
    },
  };
}

function withParts({ chars, others, text }: ShownParts, parts: readonly Part[]): ShownParts {
  const more = textOf(parts);
  return {
    chars: chars + more.length,
    others: others + parts.filter(({ kind }) => kind !== 'text').length,
    text: chars + more.length < COMPARED_MAX ? text + more : '',
  };
}

function withoutShown(parts: readonly Part[], before: ShownParts): readonly Part[] {
  let { chars, others } = before;
  return parts.flatMap((part): Part[] => {
    if (part.kind !== 'text') return others-- > 0 ? [] : [part];
    const text = part.text.slice(chars);
    chars = Math.max(0, chars - part.text.length);
    return text === '' ? [] : [{ ...part, text }];
  });
}

const textOf = (parts: readonly Part[]): string =>
  parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');

/** A name from an agent, cut to a maximum length; empty if the value is not a string. */
const boundedName = (value: unknown): string => (typeof value === 'string' ? value.slice(0, NAME_CHARS_MAX) : '');
