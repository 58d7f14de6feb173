import type { UpstreamFailure } from '#wire';
import type { UpstreamReply } from '#call';
import { SAID_MAX, unreadable } from './upstream-messages.ts';

/** Whether a server refuses the credentials of its provider with this status. */
export const refusesCredentials = (status: number): boolean => status === 401 || status === 403 || status === 407;

/**
 * The failure of a server that refuses the credentials of its provider, with its words for the provider. The status is
 * not passed on, because the client would take it as a refusal of its own credentials. `who`: the server, in the words
 * of the message.
 */
export async function credentialFailure(who: string, reply: UpstreamReply): Promise<UpstreamFailure> {
  let text = '';
  try {
    const decoder = new TextDecoder();
    for (let chunks = await reply.read(); chunks !== null && text.length < SAID_MAX; chunks = await reply.read())
      for (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  } catch {
    // What came of it says enough.
  }
  reply.discard();
  return unreadable(`${who} answered with status ${reply.status}`, reply, text);
}
