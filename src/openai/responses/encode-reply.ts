import type { JsonObject } from '#wire';
import { type Citation, jsonInside } from '#bridge';
import { EchoFields, isEmpty } from '../chat/reply/echo-fields.ts';
import type { WireEncoder } from '../translated/wire-encoder.ts';
import {
  annotationOf,
  callItem,
  messageItem,
  reasoningItem,
  type ShownThinking,
  statusOf,
  statusOfCall,
  endOfResponse,
  failedResponse,
  responseBase,
  type ResponseFacts,
  inputOf,
  type ItemStatus,
  textOf,
} from './response-object.ts';
import type { ToolNames } from '../translated/tool-names.ts';
import type { ChatEnd, ChatSaid } from '../chat/reply/chat-content.ts';

interface ResponseEncoderOptions extends ResponseFacts {
  readonly registry: ToolNames;
  readonly thinking: ShownThinking;
}

/** Higher than the number of any earlier event. */
const NATIVE_SEQUENCE = 1_000_000_000;

export function createResponseEncoder(options: ResponseEncoderOptions): WireEncoder {
  const base = responseBase(options);
  let out = '';
  let sequence = 0;
  /** `members`: JSON of the members beside the type, after a comma. */
  const emit = (type: string, members: string) => {
    out += `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence++}${members}}\n\n`;
  };
  const emitRun = (type: string, before: string, run: readonly string[], after: string) => {
    const head = `event: ${type}\ndata: {"type":"${type}","sequence_number":`;
    const behind = `${after}}\n\n`;
    // A join takes twice as long.
    for (const json of run) out += head + sequence++ + before + json + behind;
  };
  const tell = (type: string, response: JsonObject) => emit(type, `,"response":${JSON.stringify(response)}`);
  const output = createOutput({ ...options, emit, emitRun });

  return {
    begin() {
      const response = `,"response":${JSON.stringify(base)}`;
      emit('response.created', response);
      emit('response.in_progress', response);
    },
    text: output.text,
    thinking: output.thinking,
    members: output.members,
    citations: output.citations,
    call: output.call,
    arguments: output.arguments,
    ping: () => void (out += ': keep-alive\n\n'),
    end(end) {
      const ended = endOfResponse(end, options.now(), output.argumentTexts());
      const items = output.close(ended.status);
      tell(`response.${ended.status}`, { ...base, output: items, ...ended });
    },
    fail(fault, end) {
      // The provider numbered the events that passed.
      if (end === null) sequence = NATIVE_SEQUENCE;
      const items = end === null ? {} : { output: output.close('failed') };
      tell('response.failed', { ...base, ...items, ...failedResponse(fault, end) });
    },
    take() {
      const written = out;
      out = '';
      return written;
    },
    whole: (chatContent, end) => wholeResponse(base, chatContent, end, options),
    wholeFailure: ({ message, type, code }) => ({ error: { message, type, code, param: null } }),
  };
}

function wholeResponse(base: JsonObject, chatContent: ChatSaid, end: ChatEnd, options: ResponseEncoderOptions) {
  const { thinking, members, text, citations, calls } = chatContent;
  const { id, now, registry, thinking: shownThinking } = options;
  const argumentTexts = calls.map((call) => call.arguments);
  const ended = endOfResponse(end, now(), argumentTexts);
  const items: JsonObject[] = [];
  const next = (prefix: string) => `${prefix}_${id.replace(/^resp_/, '')}_${items.length}`;
  const isKept = !isEmpty(members);
  const thought = (text: string, status: ItemStatus) =>
    void items.push(reasoningItem(next('rs'), { text, members }, shownThinking, status));
  if (shownThinking.isAsked && (isKept || thinking !== ''))
    thought(thinking, statusOf(text === '' && calls.length === 0, ended.status));
  if (text !== '') items.push(messageItem(next('msg'), text, statusOf(calls.length === 0, ended.status), citations));
  for (const [index, { id: callId, name, arguments: argumentText }] of calls.entries()) {
    const status = statusOfCall(argumentText, index === calls.length - 1, ended.status);
    items.push(callItem(next('fc'), callId, name, argumentText, registry, status));
  }
  if (!shownThinking.isAsked && isKept && !calls.some((call) => shownThinking.seals.holds(members, call.id)))
    thought('', 'completed');
  return { ...base, output: items, ...ended };
}

interface OutputOptions {
  readonly id: string;
  readonly registry: ToolNames;
  readonly thinking: ShownThinking;
  /** `members`: JSON of the members beside the type, after a comma. */
  readonly emit: (type: string, members: string) => void;
  /** Emits an event for each text of `run`. Its members are `before`, the text, and `after`. */
  readonly emitRun: (type: string, before: string, run: readonly string[], after: string) => void;
}

interface Output {
  text(run: readonly string[]): void;
  thinking(json: string): void;
  members(members: JsonObject): void;
  citations(cited: readonly Citation[]): void;
  call(index: number, callId: string, name: string): void;
  arguments(index: number, json: string): void;
  argumentTexts(): readonly string[];
  /**
   * Ends all items by the status of the response. If it failed, an item without an end gets none. Returns the ended
   * items in the order in which they began.
   */
  close(status: string): readonly JsonObject[];
}

interface Item {
  readonly kind: 'message' | 'reasoning' | 'call';
  readonly id: string;
  readonly place: number;
  readonly callId: string;
  /** Name of the tool, as the model knows it. */
  readonly name: string;
  /** The inside of a JSON string: all text of the item. */
  held: string;
  readonly citations: Citation[];
}

/** Several calls may be open at the same time. A message or thinking ends when another item begins. */
function createOutput(options: OutputOptions): Output {
  const { id, registry, thinking: shownThinking, emit, emitRun } = options;
  const done: JsonObject[] = [];
  const calls = new Map<number, Item>();
  const tail = id.replace(/^resp_/, '');
  let count = 0;
  let openMessage: Item | null = null;
  /** The item that came last, or was continued last. */
  let latest: Item | null = null;
  /** The members that no item has yet. */
  const echoFields = new EchoFields();
  let firstCall: string | null = null;
  function takeMembers(): JsonObject {
    const { members } = echoFields;
    echoFields.clear();
    return members;
  }

  const at = ({ id: itemId, place }: Item) => `,"item_id":"${itemId}","output_index":${place}`;
  const added = ({ place }: Item, item: JsonObject) =>
    emit('response.output_item.added', `,"output_index":${place},"item":${JSON.stringify(item)}`);

  function begin(kind: Item['kind'], prefix: string, callId = '', name = ''): Item {
    endSaid();
    // What its provider encrypted has no text.
    if (kind !== 'reasoning' && shownThinking.isAsked) redact();
    const place = count++;
    return (latest = { kind, id: `${prefix}_${tail}_${place}`, place, callId, name, held: '', citations: [] });
  }

  function beginMessage(): Item {
    const item = begin('message', 'msg');
    added(item, { id: item.id, type: 'message', role: 'assistant', status: 'in_progress', content: [] });
    emit('response.content_part.added', `${at(item)},"content_index":0,"part":${EMPTY_PART}`);
    return item;
  }

  function beginReasoning(summary: boolean): Item {
    const item = begin('reasoning', 'rs');
    added(item, { id: item.id, type: 'reasoning', summary: [] });
    if (summary) emit('response.reasoning_summary_part.added', `${at(item)},"summary_index":0,"part":${EMPTY_SUMMARY}`);
    return item;
  }

  function redact(): void {
    const members = takeMembers();
    if (isEmpty(members)) return;
    const item = begin('reasoning', 'rs');
    added(item, { id: item.id, type: 'reasoning', summary: [] });
    finish(item, reasoningItem(item.id, { text: '', members }, shownThinking, 'completed'));
  }

  function endSaid(status: ItemStatus = 'completed'): void {
    if (openMessage === null) return;
    const item = openMessage;
    openMessage = null;
    const text = textOf(item.held);
    if (item.kind === 'message') {
      const whole = messageItem(item.id, text, status, item.citations);
      const [part] = whole['content'] as readonly JsonObject[];
      emit('response.output_text.done', `${at(item)},"content_index":0,"text":"${item.held}","logprobs":[]`);
      emit('response.content_part.done', `${at(item)},"content_index":0,"part":${JSON.stringify(part)}`);
      return finish(item, whole);
    }
    if (shownThinking.summary) {
      emit('response.reasoning_summary_text.done', `${at(item)},"summary_index":0,"text":"${item.held}"`);
      const part = JSON.stringify({ type: 'summary_text', text });
      emit('response.reasoning_summary_part.done', `${at(item)},"summary_index":0,"part":${part}`);
    }
    finish(item, reasoningItem(item.id, { text, members: takeMembers() }, shownThinking, status));
  }

  function endCall(item: Item, ofResponse: string): void {
    const argumentText = textOf(item.held);
    const status = statusOfCall(argumentText, item === latest, ofResponse);
    if (status === 'completed') emitArguments(item, argumentText, at(item), options);
    finish(item, callItem(item.id, item.callId, item.name, argumentText, registry, status));
  }

  function finish({ place }: Item, whole: JsonObject): void {
    done[place] = whole;
    emit('response.output_item.done', `,"output_index":${place},"item":${JSON.stringify(whole)}`);
  }

  return {
    text(run) {
      if (openMessage?.kind !== 'message') openMessage = beginMessage();
      latest = openMessage;
      openMessage.held += run.join('');
      emitRun('response.output_text.delta', `${at(openMessage)},"content_index":0,"delta":"`, run, '","logprobs":[]');
    },
    thinking(json) {
      if (!shownThinking.isAsked) return;
      if (openMessage?.kind !== 'reasoning') openMessage = beginReasoning(shownThinking.summary);
      latest = openMessage;
      openMessage.held += json;
      if (shownThinking.summary)
        emit('response.reasoning_summary_text.delta', `${at(openMessage)},"summary_index":0,"delta":"${json}"`);
    },
    members: (members) => echoFields.add(members),
    citations(cited) {
      // A citation is of a text, so without one it has no place.
      if (openMessage?.kind !== 'message') return;
      for (const one of cited) {
        const place = openMessage.citations.push(one) - 1;
        const members = `${at(openMessage)},"content_index":0,"annotation_index":${place}`;
        emit('response.output_text.annotation.added', `${members},"annotation":${JSON.stringify(annotationOf(one))}`);
      }
    },
    call(index, callId, name) {
      firstCall ??= callId;
      const item = begin('call', 'fc', callId, name);
      calls.set(index, item);
      const { custom, namespace, name: own } = registry.toolOf(name);
      const itemNames = { id: item.id, call_id: callId, name: own, ...(namespace === null ? {} : { namespace }) };
      added(
        item,
        custom
          ? { ...itemNames, type: 'custom_tool_call', status: 'in_progress', input: '' }
          : { ...itemNames, type: 'function_call', status: 'in_progress', arguments: '' },
      );
    },
    arguments(index, json) {
      const item = calls.get(index);
      if (!item) return;
      latest = item;
      item.held += json;
      if (!registry.toolOf(item.name).custom)
        emit('response.function_call_arguments.delta', `${at(item)},"delta":"${json}"`);
    },
    argumentTexts: () => [...calls.values()].map(({ held }) => textOf(held)),
    close(status) {
      // A client may run a tool as soon as its call has ended.
      if (status === 'failed') return done.filter(Boolean);
      endSaid(statusOf(openMessage === latest, status));
      for (const item of calls.values()) endCall(item, status);
      calls.clear();
      if (shownThinking.isAsked || firstCall === null || !shownThinking.seals.holds(echoFields.members, firstCall))
        redact();
      return done;
    },
  };
}

/** The events with the complete arguments of a call. `at`: the members that name its item. */
function emitArguments(
  { name: short, held }: Item,
  argumentText: string,
  at: string,
  { registry, emit }: Pick<OutputOptions, 'registry' | 'emit'>,
): void {
  const { name, custom } = registry.toolOf(short);
  if (!custom) {
    const whole = argumentText === '' ? '{}' : held;
    emit('response.function_call_arguments.done', `${at},"name":${JSON.stringify(name)},"arguments":"${whole}"`);
    return;
  }
  // The text for the tool is known only when its JSON wrapper is complete.
  const input = jsonInside(inputOf(argumentText));
  if (input !== '') emit('response.custom_tool_call_input.delta', `${at},"delta":"${input}"`);
  emit('response.custom_tool_call_input.done', `${at},"input":"${input}"`);
}

const EMPTY_PART = JSON.stringify({ type: 'output_text', text: '', annotations: [], logprobs: [] });
const EMPTY_SUMMARY = JSON.stringify({ type: 'summary_text', text: '' });
