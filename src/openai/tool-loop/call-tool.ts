import { GatewayError } from '#errors';
import type { JsonLimits } from '#wire';
import { printable } from '#security';
import type { CancelSignal } from '#billing/amounts';
import { contentResultOf, type Part, partOf, type TargetAdapter, type TargetContext } from '#bridge';
import { newCallId, type Pipeline } from '#call';
import { objectIn, textIn } from '../bridge/to-ask.ts';
import type { ToolCall } from './model-turn.ts';
import type { RunCounter } from './run-reply.ts';
import type { ServerTool } from './server-tools.ts';

export interface CallToolOptions {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly mcp: TargetAdapter;
  readonly limits: JsonLimits;
  readonly ask: TargetContext;
  readonly parent: string;
  readonly capped: boolean;
  readonly timeoutMs: number;
  readonly counter: RunCounter;
  readonly gone: CancelSignal;
  readonly onError: (error: unknown) => void;
}

export interface ToolSaid {
  readonly text: string;
  readonly failed: boolean;
  /** Id of the call; null if no call was made. */
  readonly callId: string | null;
}

/** Most UTF-16 units of one result. Most contexts hold less. */
const TEXT_MAX = 256 * 1024;

/**
 * Calls a tool for a model, as a billed call under the run. Never rejects: an error becomes a text for the model,
 * which may react to it.
 */
export async function callTool(
  { service, tool }: ServerTool,
  call: ToolCall,
  options: CallToolOptions,
): Promise<ToolSaid> {
  const { pipeline, mcp, ask, parent, capped, timeoutMs, counter, gone } = options;
  const { limits } = options;
  const argumentMembers = objectIn(call.arguments, limits);
  // Half an object is no text.
  if (argumentMembers === null && /^\s*[[{]/.test(call.arguments))
    return { text: 'Error: the arguments are not a JSON object', failed: true, callId: null };
  // A tool of one text may get the text itself.
  const part: Part =
    argumentMembers === null
      ? { kind: 'text', text: textIn(call.arguments, limits) ?? call.arguments }
      : { kind: 'data', data: argumentMembers };
  let callId: string | null = null;
  try {
    const request = await mcp.toCall(
      `${service}/${tool}`,
      {
        turns: [{ role: 'user', parts: [part] }],
        arguments: argumentMembers,
        contextId: null,
        taskId: null,
        maxTokens: null,
        stream: false,
      },
      ask,
    );
    // Both names may contain slashes. So the joined name could also mean a longer service name that includes the
    // beginning of the tool's name.
    if (request.targets[0] !== service || request.operation !== tool)
      throw new GatewayError(
        'invalid_model',
        `The name ${printable(`${service}/${tool}`)} is ambiguous: it also matches a tool of another service`,
      );
    const prepared = await pipeline.prepare({ ...request, capped, parent, timeoutMs }, newCallId());
    callId = prepared.id;
    const output = createSaid();
    for await (const frame of pipeline.run(prepared, gone)) {
      if (frame.type === 'data')
        for (const event of frame.data.events) {
          const part = partOf(event);
          if (part !== null) output.push(part);
        }
      if (frame.type !== 'settled') continue;
      counter.settled(prepared, frame);
      const { finish, error } = contentResultOf(frame);
      if (finish === 'failed') return { text: cut(`Error: ${error ?? 'the tool failed'}`), failed: true, callId };
      return {
        text: finish === 'cut' ? `${output.text()}\n[${error ?? 'The reply was cut'}]` : output.text(),
        failed: false,
        callId,
      };
    }
    throw new Error('a call ended without a settlement');
  } catch (error) {
    if (error instanceof GatewayError) return { text: cut(`Error: ${error.message}`), failed: true, callId };
    options.onError(error);
    return { text: 'Error: internal error', failed: true, callId };
  }
}

/** Collects the result of a tool as text for the model. */
function createSaid() {
  const pieces: string[] = [];
  let length = 0;
  return {
    push(part: Part): void {
      if (length > TEXT_MAX) return;
      const piece = textOf(part);
      length += piece.length + 1;
      pieces.push(piece);
    },
    text: () => cut(pieces.join('\n')),
  };
}

/** A file becomes a description or its URL, because its bytes are no text. */
function textOf(part: Part): string {
  if (part.kind === 'text') return part.text;
  if (part.kind === 'data') return JSON.stringify(part.data) ?? 'null';
  const { name, mediaType, url, bytes } = part;
  const about = [name, mediaType, bytes === null ? null : `${Math.floor(bytes.length * 0.75)} bytes, not shown`].filter(
    (one) => one !== null,
  );
  return [...(about.length > 0 ? [`[file: ${about.join(', ')}]`] : []), ...(url === null ? [] : [url])].join(' ');
}

/** The part is copied, because a slice would keep the whole text in memory. */
const cut = (text: string) =>
  text.length > TEXT_MAX
    ? `${Buffer.from(text.slice(0, TEXT_MAX)).toString()}\n[cut: the result is longer than ${TEXT_MAX} characters]`
    : text;
