import { isObject, type JsonObject, type ResponseMessage, UpstreamFailure } from '#wire';
import type { Send } from '#gateway';
import { initializeAt, postInitialized, type ServerSession } from '../../legacy-server.ts';
import { requestText } from '../../../wire/own-messages.ts';
import { isLegacyRevision, LEGACY } from '../../../wire/revisions.ts';

export interface OpenedSession extends ServerSession {
  readonly capabilities: JsonObject;
}

export interface SessionClient {
  /** The capabilities that the client declares. */
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
}

/** Opens a session on behalf of the client. Throws UpstreamFailure; the client's own request has not been sent then. */
export async function openSession(send: Send, client: SessionClient): Promise<OpenedSession> {
  try {
    const params = { protocolVersion: LEGACY[0], ...client };
    const { response, status, accepted } = await initializeAt(send, requestText(0, 'initialize', params));
    if (accepted === null || !isLegacyRevision(accepted.revision)) throw refused(status, response);
    const { result, ...session } = accepted;
    await postInitialized(send, session);
    return { ...session, capabilities: isObject(result['capabilities']) ? result['capabilities'] : {} };
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.unsent) throw error;
    const { status, attributedTo } = error;
    throw new UpstreamFailure(error.message, { status, retryable: true, attributedTo, unsent: true, cause: error });
  }
}

function refused(status: number, { error }: ResponseMessage): UpstreamFailure {
  const why = error ? `refused initialize with error ${error.code}` : 'did not answer initialize as MCP says';
  return new UpstreamFailure(`the provider's server ${why}`, { status, retryable: true, attributedTo: 'provider' });
}
