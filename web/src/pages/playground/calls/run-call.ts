import { ApiError } from '../../../api/api-error.ts';
import { request } from '../../../api/request.ts';
import { type Answer, beginAnswer, faultOf } from './answer.ts';
import { readEvents } from './read-events.ts';
import { type Chunk, endAnswer, reduceChunk, takeComment } from './take-chunk.ts';

/** The most characters of one answer. A longer answer is stopped. */
const TEXT_MAX = 400_000;
const PARTS_MAX = 2_000;
/** The most received characters, including files. */
const RECEIVED_MAX = 96 * 1024 * 1024;

/** The path for all calls of models, tools and agents. It is the only such path that accepts a browser's session. */
export const CHAT_PATH = '/api/v1/chat/completions';

export interface CallBody extends Readonly<Record<string, unknown>> {
  readonly model: string;
}

/**
 * Makes a call and reports the answer as it grows. Never rejects, because errors are part of the answer. The call stops
 * if the signal aborts or if the answer gets too large.
 */
export async function runCall(
  body: CallBody,
  signal: AbortSignal,
  onChange: (answer: Answer) => void,
): Promise<Answer> {
  let answer = beginAnswer();
  const parts = /^(?:a2a|mcp)\//.test(body.model);
  const put = (next: Answer) => {
    if (next !== answer) onChange((answer = next));
  };
  let received = 0;
  const tooMuch = () =>
    answer.length + answer.thinking.length > TEXT_MAX || answer.pieces.length > PARTS_MAX || received > RECEIVED_MAX;
  const tooLong = new AbortController();
  try {
    const reply = await request(CHAT_PATH, {
      method: 'POST',
      json: { ...body, stream: true },
      signal: AbortSignal.any([signal, tooLong.signal]),
    });
    put({
      ...answer,
      callId: reply.headers.get('x-generation-id'),
      provider: reply.headers.get('x-provider'),
      stops: reply.headers.get('x-tollgate-stops') !== 'false',
    });
    for await (const line of readEvents(reply)) {
      received += line.text.length;
      if (line.type === 'comment') put(takeComment(answer, line.text));
      else if (line.text !== '[DONE]') put(reduceChunk(answer, parse(line.text), parts));
      if (tooMuch()) {
        tooLong.abort();
        put({
          ...answer,
          note: 'The answer was stopped here: it is too long to show.',
        });
        break;
      }
    }
    put(endAnswer(answer));
  } catch (error) {
    put(signal.aborted ? endAnswer(answer, { stopped: true }) : endAnswer(answer, { fault: faultOf(error) }));
  }
  return answer;
}

function parse(text: string): Chunk {
  try {
    return JSON.parse(text) as Chunk;
  } catch (cause) {
    throw new ApiError('The answer cannot be read', { status: 0, type: 'broken', cause });
  }
}
