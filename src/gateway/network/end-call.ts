import { constants, type IncomingHttpHeaders } from 'node:http2';
import { END_CALL_HEADER, type Peers } from './peers.ts';
import type { Node } from './registry/presence.ts';

/** An operator's wish to end a call, as one gateway tells it to another. */
export interface CallToEnd {
  readonly id: string;
  /** The id of the administrator's key. */
  readonly by: string;
  /** Words for the client; null for none. */
  readonly reason: string | null;
  /** The id of the batch that has this lock; null for every other call. */
  readonly batch: string | null;
}

/** Longest wait for another gateway, which only looks into its memory. */
const ANSWER_MS = 5_000;
const HERE = 200;

/**
 * Has other gateways end a call. Resolves with whether one of them ran it, and with the addresses of those that did not
 * answer.
 */
export async function endCallAt(
  peers: Pick<Peers, 'session'>,
  nodes: readonly Node[],
  call: CallToEnd,
): Promise<{ readonly ended: boolean; readonly silent: readonly string[] }> {
  const answers = await Promise.all(nodes.map((node) => ask(peers, node, call)));
  return {
    ended: answers.includes('ended'),
    silent: nodes.flatMap(({ url }, index) => (answers[index] === 'silent' ? [url] : [])),
  };
}

function ask(peers: Pick<Peers, 'session'>, node: Node, call: CallToEnd): Promise<'ended' | 'not here' | 'silent'> {
  const { promise, resolve } = Promise.withResolvers<'ended' | 'not here' | 'silent'>();
  const silent = () => resolve('silent');
  try {
    const headers = { ':path': '/', [END_CALL_HEADER]: encodeURIComponent(JSON.stringify(call)) };
    const stream = peers.session(node).request(headers, { endStream: true });
    stream.setTimeout(ANSWER_MS, () => stream.close(constants.NGHTTP2_CANCEL));
    stream.once('error', silent);
    stream.once('close', silent);
    stream.once('response', (headers: IncomingHttpHeaders & { ':status'?: number }) => {
      resolve(headers[':status'] === HERE ? 'ended' : 'not here');
      stream.close(constants.NGHTTP2_NO_ERROR);
    });
  } catch {
    silent();
  }
  return promise;
}

/** The status for another gateway that asks to end a call. `end`: whether the call was at work here. */
export function answerEndCall(header: string, end: (call: CallToEnd) => boolean): number {
  try {
    // A gateway of this database wrote it: it knows the secret.
    return end(JSON.parse(decodeURIComponent(header)) as CallToEnd) ? HERE : 404;
  } catch {
    return 400;
  }
}
