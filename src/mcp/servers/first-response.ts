import type { ResponseMessage } from '#wire';
import { readReply, type UpstreamReply } from '#gateway';

/**
 * The first response in a reply; null if the reply ends without one. Notifications and requests before it are dropped,
 * and so is the rest of the reply. Throws UpstreamFailure.
 */
export async function firstResponse(reply: UpstreamReply, bytesMax: number): Promise<ResponseMessage | null> {
  try {
    for await (const { message } of readReply(reply, bytesMax)) if (message?.kind === 'response') return message;
    return null;
  } finally {
    reply.discard();
  }
}
