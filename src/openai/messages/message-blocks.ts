import type { JsonObject } from '#wire';
import { jsonInside } from '#bridge';
import { EchoFields, isEmpty } from '../chat/reply/echo-fields.ts';
import { JsonProgress } from '../translated/wire-encoder.ts';
import type { WireRequest } from '../translated/wire-request.ts';

/** The model calls a tool itself, and no program of its provider does. */
export const CALLER = { type: 'direct' };

interface BlocksOptions {
  readonly thinking: 'shown' | 'sealed' | 'off';
  readonly seals: WireRequest['seals'];
  readonly write: (events: string) => void;
}

export interface Blocks {
  count: number;
  /** The arguments of a call ended before they were complete. */
  isCut: boolean;
  text(run: readonly string[]): void;
  thinking(json: string): void;
  members(members: JsonObject): void;
  call(index: number, id: string, name: string): void;
  arguments(index: number, json: string): void;
  close(): void;
}

interface Block {
  readonly kind: 'text' | 'thinking' | 'redacted' | 'call';
  /** The block as the client first sees it. */
  readonly start: Readonly<Record<string, unknown>>;
  /** Index of the call; -1 for other blocks. */
  readonly call: number;
  /**
   * The inside of a JSON string: the text that came before the block was open. For sealed thinking, all of the text.
   * For an open call, the arguments that `progress` has not read.
   */
  held: string;
  /** How far the arguments of a call have come; null for other blocks. */
  readonly progress: JsonProgress | null;
  /** Signs thinking that is shown; null for other blocks. */
  readonly signing: ReturnType<WireRequest['seals']['signing']> | null;
  /** The beginning of arguments that may become `null`, such as `nul`. */
  lead: string;
  /** The members of the message that came with it; null for other blocks than thinking. */
  readonly echoFields: EchoFields | null;
}

export const event = (type: string, members: Readonly<Record<string, unknown>>): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;

/** The beginning of a delta, up to its text. */
const DELTAS = {
  redacted: '',
  text: '{"type":"text_delta","text":"',
  thinking: '{"type":"thinking_delta","thinking":"',
  call: '{"type":"input_json_delta","partial_json":"',
} as const;

/**
 * On this wire blocks follow each other, and their indices have no gaps. The first unfinished block is open. Later
 * blocks wait. This happens if a chat stream mixes its calls.
 */
export function createBlocks({ thinking: thinks, seals, write }: BlocksOptions): Blocks {
  /** The open block and those that wait for it. */
  const waiting: Block[] = [];
  const calls = new Map<number, Block>();
  let index = -1;
  /** The members that no block has yet. */
  let echoFields = new EchoFields();
  let firstCall: string | null = null;
  function takeFields(): EchoFields {
    const all = echoFields;
    echoFields = new EchoFields();
    return all;
  }

  /** The event of a delta of the open block, up to its text. */
  let before = '';
  /** Concatenates one by one, which takes half as long as a join. */
  function delta(run: readonly string[]): void {
    let events = '';
    for (const json of run) events += before + json + AFTER;
    write(events);
  }
  const sealed = (block: Block) => block.kind === 'thinking' && thinks === 'sealed';

  function open(block: Block): void {
    index++;
    before = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":${DELTAS[block.kind]}`;
    write(event('content_block_start', { index, content_block: block.start }));
    if (block.held !== '' && !sealed(block)) delta([block.held]);
  }

  function add(block: Omit<Block, 'held' | 'progress' | 'signing' | 'lead' | 'echoFields'>): Block {
    const signing = block.kind === 'thinking' && thinks === 'shown' ? seals.signing() : null;
    const progress = block.kind === 'call' ? new JsonProgress() : null;
    const own = block.kind === 'thinking' ? takeFields() : null;
    const added: Block = { ...block, held: '', progress, signing, lead: '', echoFields: own };
    waiting.push(added);
    if (waiting.length === 1) open(added);
    else advance();
    return added;
  }

  function advance(): void {
    while (waiting.length > 1 && (waiting.length > WAITING_MAX || isWhole(waiting[0]!))) {
      end(waiting.shift()!);
      open(waiting[0]!);
    }
  }

  let isCut = false;
  function end(block: Block): void {
    calls.delete(block.call);
    // This reads the rest of the arguments.
    if (!isWhole(block) && block.progress!.isOpen) isCut = true;
    if (block.echoFields !== null) {
      const { members } = block.echoFields;
      const signature =
        block.signing?.signature(members) ??
        seals.seal(isEmpty(members) ? { reasoning_content: textOf(block.held) } : members);
      write(event('content_block_delta', { index, delta: { type: 'signature_delta', signature } }));
    }
    write(event('content_block_stop', { index }));
  }

  function say(block: Block, run: readonly string[]): void {
    block.signing?.add(textOf(run.join('')));
    const isOpen = block === waiting[0];
    if (isOpen && !sealed(block)) delta(run);
    // Text that was written out is not needed again, except the arguments of a call: they show whether the call is
    // complete.
    if (!isOpen || block.kind === 'call' || sealed(block)) block.held += run.join('');
  }

  /** Thinking that is not to be read, such as what its provider encrypted. */
  function redact(): void {
    const { members } = takeFields();
    if (!isEmpty(members)) add({ kind: 'redacted', call: -1, start: redactedBlock(seals.seal(members)) });
  }

  function words(kind: 'text' | 'thinking', run: readonly string[]): void {
    const last = waiting.at(-1);
    if (last?.kind === kind) return say(last, run);
    if (kind === 'text' && thinks !== 'off') redact();
    say(add({ kind, call: -1, start: kind === 'text' ? TEXT : THINKING }), run);
  }

  return {
    count: 0,
    isCut: false,
    text: (run) => words('text', run),
    thinking: (json) => {
      if (thinks !== 'off') words('thinking', [json]);
    },
    members: (members) => (waiting.at(-1)?.echoFields ?? echoFields).add(members),
    call(call, id, name) {
      this.count++;
      firstCall ??= id;
      if (thinks !== 'off') redact();
      calls.set(call, add({ kind: 'call', call, start: { type: 'tool_use', id, caller: CALLER, name, input: {} } }));
    },
    arguments(call, json) {
      const block = calls.get(call);
      // A call that has ended had complete arguments, or too many blocks waited for it. More of them are ignored.
      if (!block) return;
      if (block.held !== '' || block.progress!.hasBegun || (block.lead === '' && json[0] === '{'))
        return say(block, [json]);
      const text = block.lead + textOf(json);
      block.lead = NO_ARGUMENTS.test(text.trim()) ? text.trim() : '';
      if (block.lead === '' && text.trim() !== '') say(block, [jsonInside(text)]);
    },
    close() {
      const isCarried = thinks === 'off' && firstCall !== null && seals.holds(echoFields.members, firstCall);
      if (!isCarried) redact();
      while (waiting.length > 0) {
        end(waiting.shift()!);
        if (waiting.length > 0) open(waiting[0]!);
      }
      this.isCut = isCut;
    },
  };
}

/** Beginnings of `null` and of an empty text. The input of a call is an object, so they are left out. */
const NO_ARGUMENTS = /^(?:n(?:u(?:ll?)?)?|""?)?$/;

/** The end of a delta, after its text. */
const AFTER = '"}}\n\n';
/** `citations`: strict clients of this API require it, and version 3 of the AI SDK's package refuses null. */
export const UNCITED = { citations: [] };
const TEXT = { type: 'text', text: '', ...UNCITED };
/** `data`: the members of the message, sealed. */
export const redactedBlock = (data: string) => ({ type: 'redacted_thinking', data });
const THINKING = { type: 'thinking', thinking: '', signature: '' };

/** Parses a text from the inside of its JSON string. */
const textOf = (json: string): string => JSON.parse(`"${json}"`) as string;

/** The most blocks that wait, with the open one. A reply has room for millions. */
const WAITING_MAX = 1_024;

/** Whether the open block cannot continue: it is no call, or its arguments are complete. */
function isWhole(open: Block): boolean {
  const { progress } = open;
  if (progress === null) return true;
  progress.push(textOf(open.held));
  open.held = '';
  return progress.isWhole;
}
