import { BOUNDS, isObject, readForeign, UpstreamFailure, type JsonObject } from '#wire';
import { failedByItsOwnWords } from '#wire/replies';
import type { MessageSocket } from '#http';
import type { Offer } from '#catalog';

/** A session at a provider, before its first event for the client. */
export interface ProviderSession {
  readonly socket: MessageSocket;
  /** As its provider shows it, with the cap of responses. */
  readonly session: JsonObject;
}

const CAP_EVENT = 'tollgate_cap';

/**
 * Reads the first events of a session at a provider, and sets the cap of its responses before anything else is sent,
 * with the configuration of a client secret. Rejects with UpstreamFailure.
 */
export async function beginSession(
  socket: MessageSocket,
  { model }: Offer,
  outputMax: number,
  configured: JsonObject | null,
): Promise<ProviderSession> {
  const created = await nextEvent(socket, ['session.created']);
  const createdSession = isObject(created['session']) ? created['session'] : {};
  const session: JsonObject = {
    ...configured,
    type: 'realtime',
    max_output_tokens: outputMax,
    ...(model!.outputModalities.includes('audio') ? {} : { output_modalities: ['text'] }),
    ...(transcribes(createdSession) ? { audio: untranscribed(configured?.['audio']) } : {}),
  };
  void socket.send(JSON.stringify({ type: 'session.update', event_id: CAP_EVENT, session }));
  const updated = await nextEvent(socket, ['session.updated']);
  return { socket, session: isObject(updated['session']) ? updated['session'] : { ...createdSession, ...session } };
}

function transcribes({ audio }: JsonObject): boolean {
  const input = isObject(audio) ? audio['input'] : null;
  return isObject(input) && isObject(input['transcription']);
}

/** A transcription is the work of another model, which nobody would pay. */
function untranscribed(audio: unknown): JsonObject {
  const audioSettings = isObject(audio) ? audio : {};
  const input = isObject(audioSettings['input']) ? audioSettings['input'] : {};
  return { ...audioSettings, input: { ...input, transcription: null } };
}

/** Skips other events, of which a provider sends a few. */
async function nextEvent(socket: MessageSocket, types: readonly string[]): Promise<JsonObject> {
  for (let skipped = 0; skipped <= SKIPPED_MAX; skipped++) {
    const message = await socket.next();
    if (message === null) throw broken('it closed the session before it began');
    const event = await readEvent(message);
    if (event === null) throw broken('it sent something that is not an event of the Realtime API');
    if (event['type'] === 'error') throw failedByItsOwnWords(event['error']);
    if (types.includes(event['type'] as string)) return event;
  }
  throw broken(`it did not send ${types.join(' or ')}`);
}

const SKIPPED_MAX = 16;

/** Resolves with an event that has a type; with null for anything else. */
export async function readEvent(message: Buffer | 'binary'): Promise<JsonObject | null> {
  if (message === 'binary') return null;
  const event = await readForeign(message, BOUNDS.realtimeEvent).catch(() => null);
  return isObject(event) && typeof event['type'] === 'string' ? event : null;
}

const broken = (what: string): UpstreamFailure =>
  new UpstreamFailure(what, { retryable: true, attributedTo: 'provider' });

/**
 * A session as the client may see it: with the name that it called, and without a secret that would lead past the
 * gateway.
 */
export function shownSession(session: unknown, service: string): unknown {
  if (!isObject(session)) return session;
  const { client_secret: _, ...shownMembers } = session;
  return 'model' in shownMembers ? { ...shownMembers, model: service } : shownMembers;
}

export interface SessionState {
  /** Sound may begin a response without being asked. */
  readonly respondsToSound: boolean;
  /** The most tokens of a response; null if it does not say. */
  readonly outputMax: number | null;
  /** The formats of the sound that comes and goes; undefined if it does not say. */
  readonly inputFormat: unknown;
  readonly outputFormat: unknown;
}

/** A setting that is not said counts as on, because it locks more. */
export function stateOf(session: unknown): SessionState {
  const sessionMembers = isObject(session) ? session : {};
  const audio = isObject(sessionMembers['audio']) ? sessionMembers['audio'] : {};
  const input = isObject(audio['input']) ? audio['input'] : {};
  const output = isObject(audio['output']) ? audio['output'] : {};
  const { turn_detection: detection } = input;
  const cap = sessionMembers['max_output_tokens'];
  return {
    respondsToSound: detection !== null && !(isObject(detection) && detection['create_response'] === false),
    outputMax: typeof cap === 'number' ? cap : null,
    inputFormat: input['format'],
    outputFormat: output['format'],
  };
}
