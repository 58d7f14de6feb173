import { type ChatEnd, type ChatSaid, faultOf, hasFailed, type WireEncoder } from '../translated/wire-encoder.ts';
import { createOutput } from './response-output.ts';
import { callItem, messageItem, reasoningItem, type ShownThinking, statusOf, statusOfCall } from './response-items.ts';
import { endOfResponse, errorOf, responseBase, type ResponseFacts } from './response-object.ts';
import type { Json } from './responses-schema.ts';
import type { ToolRegistry } from './tool-registry.ts';

interface ResponseEncoderOptions extends ResponseFacts {
  readonly registry: ToolRegistry;
  /** null: the client asked for no thinking. */
  readonly thinking: ShownThinking | null;
}

/** Higher than the number of any earlier event. */
const NATIVE_SEQUENCE = 1_000_000_000;

/** Writes a chat reply as a response of OpenAI's Responses API. */
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
  const tell = (type: string, response: Json) => emit(type, `,"response":${JSON.stringify(response)}`);
  const output = createOutput({ ...options, emit, emitRun });

  return {
    begin() {
      const response = `,"response":${JSON.stringify(base)}`;
      emit('response.created', response);
      emit('response.in_progress', response);
    },
    text: output.text,
    thinking: output.thinking,
    call: output.call,
    arguments: output.arguments,
    ping: () => void (out += ': keep-alive\n\n'),
    end(end) {
      const ended = endOfResponse(end, options.now());
      const items = output.close(ended.status);
      tell(`response.${ended.status}`, { ...base, output: items, ...ended });
    },
    failNative(fault) {
      // The provider numbered the earlier events.
      sequence = NATIVE_SEQUENCE;
      tell('response.failed', { ...base, status: 'failed', error: errorOf(fault) });
    },
    take() {
      const taken = out;
      out = '';
      return taken;
    },
    whole: (said, end) => wholeResponse(base, said, end, options),
  };
}

function wholeResponse(base: Json, said: ChatSaid, end: ChatEnd, options: ResponseEncoderOptions) {
  if (hasFailed(end)) {
    const { message, type, code } = faultOf(end);
    return { status: 500, body: { error: { message, type, code, param: null } } };
  }
  const { thinking, text, calls } = said;
  const { id, now, registry, thinking: shown } = options;
  const ended = endOfResponse(end, now());
  const items: Json[] = [];
  const next = (prefix: string) => `${prefix}_${id.replace(/^resp_/, '')}_${items.length}`;
  if (thinking !== '' && shown !== null)
    items.push(reasoningItem(next('rs'), thinking, shown, statusOf(text === '' && calls.length === 0, ended.status)));
  if (text !== '') items.push(messageItem(next('msg'), text, statusOf(calls.length === 0, ended.status)));
  for (const [index, { id: callId, name, arguments: given }] of calls.entries()) {
    const status = statusOfCall(given, index === calls.length - 1, ended.status);
    items.push(callItem(next('fc'), callId, name, given, registry, status));
  }
  return { status: 200, body: { ...base, output: items, ...ended } };
}
