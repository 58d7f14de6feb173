import { eventText, LargeStrings, type RequestMessage, resultText } from '#wire';
import { decodePartsEvents, type PartsEnd } from '#gateway';
import { type ServerInfo, ownResult } from '../result-text.ts';
import { progressTokenOf } from '../../servers/translators/modern-to-legacy/request-text.ts';
import { withMeta } from '../../wire/meta.ts';
import type { McpTail } from '../../request/mcp-request.ts';
import { createPartsContent, wordsOfItem } from './content-of-parts.ts';
import type { BridgedKind } from './bridged-kinds.ts';

interface PartsAnswerOptions {
  readonly kind: BridgedKind;
  /** The `tools/call` message. */
  readonly message: RequestMessage;
  readonly modern: boolean;
  /** The client accepts events. */
  readonly events: boolean;
  readonly info: ServerInfo;
  /** Most characters of the result. */
  readonly charsMax: number;
}

/** Turns the parts of a primitive's answer into the answer to a `tools/call`. */
interface PartsAnswer {
  /** Whether the client gets the text while it is produced. */
  readonly heard: boolean;
  /**
   * Takes a data frame. Returns progress notifications with its text, if the client gave a progress token; else null.
   */
  events(bytes: Uint8Array): Uint8Array | null;
  /** The response at the end; null for a call that was aborted. */
  response(tail: unknown): McpTail | null;
}

const STATES = {
  stop: 'completed',
  length: 'completed',
  input: 'input-required',
  cut: 'canceled',
  failed: 'failed',
  later: 'working',
} as const satisfies Record<PartsEnd['finish'], string>;

export function createPartsAnswer({ kind, message, modern, events, info, charsMax }: PartsAnswerOptions): PartsAnswer {
  const token = events ? progressTokenOf(message) : null;
  const content = createPartsContent(charsMax);
  let told = 0;

  const notify = (text: string | null) => {
    const said = text === null ? '' : `,"message":${JSON.stringify(text)}`;
    const params = `{"progressToken":${token},"progress":${++told}${said}}`;
    return eventText(`{"jsonrpc":"2.0","method":"notifications/progress","params":${params}}`);
  };

  return {
    heard: token !== null,
    events(bytes) {
      let notes = '';
      let text = '';
      for (const event of decodePartsEvents(bytes)) {
        if (event.type === 'progress') {
          if (token !== null) notes += notify(event.text);
          continue;
        }
        content.add(event.part);
        if (event.part.kind === 'text') text += event.part.text;
      }
      if (token === null) return null;
      if (text !== '') notes += notify(text);
      return notes === '' ? null : Buffer.from(notes);
    },
    response(tail) {
      if (tail === null) return null;
      const { finish, error, taskId, contextId, files = [] } = tail as PartsEnd;
      const large = new LargeStrings();
      for (const file of files) content.addLarge(file, large);
      const failed = finish === 'failed';
      const said = failed ? (error ?? 'It failed and gave no reason') : finish === 'cut' ? error : null;
      const items = [...content.items(), ...(said === null ? [] : [{ type: 'text', text: said } as const])];
      const structured = {
        answer: items.map(wordsOfItem).join('\n'),
        task_id: taskId,
        context_id: contextId,
        state: STATES[finish],
        ...(finish === 'input' || finish === 'later' ? { cost_pending: true } : {}),
      };
      const members = {
        content: JSON.stringify(items),
        ...(kind === 'a2a' ? { structuredContent: JSON.stringify(structured) } : {}),
        ...(failed ? { isError: 'true' } : {}),
      };
      const text = resultText(message.idText, ownResult(members, info, modern, false));
      const whole = finish !== 'length' && finish !== 'cut' && !content.cut;
      return {
        text: whole ? text : withMeta(text, 'result', { 'tollgate/finish': '"length"' }),
        status: 200,
        ...(files.length === 0 ? {} : { large }),
      };
    },
  };
}
