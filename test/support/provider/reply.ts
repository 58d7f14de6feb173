import type { Behaviour } from './behaviour.ts';
import type { ChatRequest } from './request.ts';
import { promptTokens, TOOL_ARGUMENT_PIECES, tokenText } from './tokens.ts';
import { usageText } from './usage-claim.ts';

/** A part of the response body. The facts count as delivered when all its bytes are written. */
export interface Segment {
  readonly bytes: Buffer;
  /** Number of completion tokens in it. */
  readonly tokens: number;
  /** The completion text in it. */
  readonly text: string;
  /** JSON text of the usage in it, or null. */
  readonly usage: string | null;
}

const CREATED = 1_760_000_000;

/** The complete answer to a request. */
export interface Plan {
  readonly prompt: number;
  readonly completion: number;
  readonly finishReason: 'stop' | 'length' | 'tool_calls' | 'error';
  /** Pieces of one choice, one token each. They are made on demand because a stream may be long. */
  pieces(): Iterable<Piece>;
}

interface Piece {
  readonly text: string;
  /** The delta of a stream, as JSON text. */
  readonly delta: string;
}

export function plan(request: ChatRequest, behaviour: Behaviour): Plan {
  const limit = behaviour.ignoreMax ? Infinity : (request.maxTokens ?? Infinity);
  const calls = request.toolCalls.length > 0;
  const wanted = calls ? request.toolCalls.length * (1 + TOOL_ARGUMENT_PIECES.length) : behaviour.tokens;
  const each = Math.min(wanted, limit);
  return {
    prompt: promptTokens(request),
    completion: each * request.n,
    finishReason: behaviour.finish === 'error' ? 'error' : each < wanted ? 'length' : calls ? 'tool_calls' : 'stop',
    *pieces() {
      let made = 0;
      for (const piece of calls ? toolPieces(request.toolCalls, behaviour) : textPieces()) {
        if (made === each) return;
        made += 1;
        yield piece;
      }
    },
  };
}

function* textPieces(): Iterable<Piece> {
  for (let index = 0; ; index += 1) {
    const text = tokenText(index);
    yield { text, delta: `{"content":${JSON.stringify(text)}}` };
  }
}

function* toolPieces(names: readonly string[], behaviour: Behaviour): Iterable<Piece> {
  for (const [position, name] of names.entries()) {
    const index = behaviour.tools === 'no-index' ? '' : `"index":${position},`;
    const identity = `"id":"call_${position}","type":"function",`;
    yield {
      text: name,
      delta: `{"tool_calls":[{${index}${identity}"function":{"name":${JSON.stringify(name)},"arguments":""}}]}`,
    };
    for (const piece of TOOL_ARGUMENT_PIECES) {
      const repeated = behaviour.tools === 'repeat-id' ? identity : '';
      const named = behaviour.tools === 'repeat-id' ? `"name":${JSON.stringify(name)},` : '';
      yield {
        text: piece,
        delta: `{"tool_calls":[{${index}${repeated}"function":{${named}"arguments":${JSON.stringify(piece)}}}]}`,
      };
    }
  }
}

/** The JSON body of an answer that isn't streamed. */
export function completionBody(id: string, request: ChatRequest, behaviour: Behaviour, planned: Plan): Segment {
  const texts = Array.from(planned.pieces(), (piece) => piece.text);
  const text = texts.join('');
  const inside =
    behaviour.finish === 'inside' || behaviour.finish === 'error' ? `,"finish_reason":"${planned.finishReason}"` : '';
  const message =
    request.toolCalls.length > 0
      ? toolMessage(request.toolCalls, behaviour)
      : `{"role":"assistant","content":${JSON.stringify(text)}}`;
  const choices = Array.from({ length: request.n }, (_, index) => `{"index":${index},"message":${message}${inside}}`);
  const beside = behaviour.finish === 'beside' ? `,"finish_reason":"${planned.finishReason}"` : '';
  const usage = usageText(behaviour.usage, planned);
  const body = `{"id":"${id}","object":"chat.completion","created":${CREATED},"model":${JSON.stringify(request.model)},"choices":[${choices.join(',')}]${beside}${usage === null ? '' : `,"usage":${usage}`}}`;
  return {
    bytes: Buffer.from(`${behaviour.bom ? '\u{FEFF}' : ''}${body}`),
    tokens: planned.completion,
    text: text.repeat(request.n),
    usage,
  };
}

function toolMessage(names: readonly string[], behaviour: Behaviour): string {
  const calls = names.map((name, position) => {
    const index = behaviour.tools === 'no-index' ? '' : `"index":${position},`;
    return `{${index}"id":"call_${position}","type":"function","function":{"name":${JSON.stringify(name)},"arguments":${JSON.stringify(TOOL_ARGUMENT_PIECES.join(''))}}}`;
  });
  return `{"role":"assistant","content":null,"tool_calls":[${calls.join(',')}]}`;
}

/** The stream's events, one segment each. */
export function* streamSegments(
  id: string,
  request: ChatRequest,
  behaviour: Behaviour,
  planned: Plan,
): Iterable<Segment> {
  const event = eventWriter(behaviour);
  const chunk = (choices: string, extra: string): string =>
    `{"id":"${id}","object":"chat.completion.chunk","created":${CREATED},"model":${JSON.stringify(request.model)},"choices":[${choices}]${extra}}`;
  const segment = (json: string, tokens = 0, text = '', usage: string | null = null): Segment => ({
    bytes: event(json),
    tokens,
    text,
    usage,
  });
  const claim = usageText(behaviour.usage, planned);
  const inFinish = behaviour.usagePlace === 'finish' || behaviour.usage === 'twice';
  const trailing =
    (behaviour.usagePlace === 'trailing' && request.includeUsage) ||
    behaviour.usage === 'twice' ||
    behaviour.usage === 'after-done';
  // Like the real service: if usage was requested, it is null in every chunk but the last.
  const open = request.includeUsage && behaviour.usage !== 'every' ? ',"usage":null' : '';

  if (behaviour.bom) yield { bytes: Buffer.from('\u{FEFF}'), tokens: 0, text: '', usage: null };
  for (let index = 0; index < request.n; index += 1) {
    yield segment(chunk(`{"index":${index},"delta":{"role":"assistant","content":""},"finish_reason":null}`, open));
  }
  let sent = 0;
  for (const piece of planned.pieces()) {
    for (let index = 0; index < request.n; index += 1) {
      if (sent === behaviour.errorAt) {
        yield segment('{"error":{"message":"the model fell over","type":"server_error","code":500}}');
        return;
      }
      sent += 1;
      const running =
        behaviour.usage === 'every' ? usageText('every', { prompt: planned.prompt, completion: sent }) : null;
      const extra = running === null ? open : `,"usage":${running}`;
      yield segment(
        chunk(`{"index":${index},"delta":${piece.delta},"finish_reason":null}`, extra),
        1,
        piece.text,
        running,
      );
    }
    if (behaviour.endlessLine !== null) {
      yield* endlessLine(behaviour.endlessLine);
      return;
    }
  }
  const finish =
    behaviour.finish === 'inside' || behaviour.finish === 'error' ? `,"finish_reason":"${planned.finishReason}"` : '';
  const beside = behaviour.finish === 'beside' ? `,"finish_reason":"${planned.finishReason}"` : '';
  for (let index = 0; index < request.n; index += 1) {
    const usage = inFinish && index === request.n - 1 ? claim : null;
    const extra = usage === null ? open : `,"usage":${usage}`;
    yield segment(chunk(`{"index":${index},"delta":{}${finish}}`, `${beside}${extra}`), 0, '', usage);
  }
  const last = claim === null ? null : segment(chunk('', `,"usage":${claim}`), 0, '', claim);
  if (last !== null && trailing && behaviour.usage !== 'after-done') yield last;
  if (!behaviour.noDone) yield segment('[DONE]');
  if (last !== null && behaviour.usage === 'after-done') yield last;
}

function eventWriter(behaviour: Behaviour): (json: string) => Buffer {
  const end = { lf: '\n', crlf: '\r\n', cr: '\r' }[behaviour.lineEnd];
  const field = behaviour.noSpace ? 'data:' : 'data: ';
  const before = behaviour.comments ? `: a comment${end}id: 7${end}unknown: field${end}` : '';
  return (json) => {
    const lines =
      behaviour.multiline && json !== '[DONE]' && !json.includes('NaN')
        ? JSON.stringify(JSON.parse(json), null, 1).split('\n')
        : [json];
    return Buffer.from(`${before}${lines.map((line) => `${field}${line}${end}`).join('')}${end}`);
  };
}

function* endlessLine(length: number): Iterable<Segment> {
  const start = Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"');
  yield { bytes: start.subarray(0, length), tokens: 0, text: '', usage: null };
  const filler = Buffer.alloc(65_536, 'a');
  for (let left = length - start.length; left > 0; left -= filler.length)
    yield { bytes: filler.subarray(0, left), tokens: 0, text: '', usage: null };
}
