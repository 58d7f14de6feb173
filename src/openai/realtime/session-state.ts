import { isObject, type JsonObject } from '#wire';
import { bytesPerSecond } from './conversation-size.ts';
import { bytesOf } from './client-events.ts';
import { type SessionState, stateOf } from './provider-session.ts';

/**
 * The settings of a session that decide what a response can cost. A change counts from the moment it is sent if it can
 * cost more, and only once its provider confirms it if it costs less.
 */
export class SessionSettings {
  /** Bytes of instructions and tools, the most of all that were sent. */
  promptBytes = 0;
  #state: SessionState;
  /** Changes that were sent and not confirmed. */
  #unconfirmed = 0;
  #mayRespond = false;
  #outputMost = 0;
  /** The fewest bytes of a second that any format had: a change takes effect at an unknown moment. */
  #inputBytes: number;
  #instructions = 0;
  #tools = 0;
  /** All that the client has set, of a session whose provider is not believed; else null. */
  #requestedSession: JsonObject | null;
  readonly #outputCap: number;

  /**
   * `session`: as its provider shows it. `outputCap`: the most tokens of a response that the gateway allows.
   * `isBelieved`: false for a provider that dialled in. It could show instructions that nobody sent and be paid for
   * them, or a format in which the same bytes are more sound. So only what its client set counts.
   */
  constructor(session: unknown, outputCap: number, isBelieved = true) {
    this.#outputCap = outputCap;
    this.#requestedSession = isBelieved ? null : {};
    this.#state = stateOf(this.#believed(session));
    this.#inputBytes = bytesPerSecond(this.#state.inputFormat);
    this.#grow(this.#believed(session));
  }

  get respondsToSound(): boolean {
    return this.#state.respondsToSound || this.#mayRespond;
  }

  get outputMax(): number {
    return Math.min(this.#outputCap, Math.max(this.#state.outputMax ?? this.#outputCap, this.#outputMost));
  }

  get inputBytesOfSecond(): number {
    return this.#inputBytes;
  }

  get outputBytesOfSecond(): number {
    return bytesPerSecond(this.#state.outputFormat);
  }

  /** The client's `session.update` is sent. `session`: as its provider gets it. */
  sent(session: JsonObject): void {
    this.#unconfirmed++;
    const { audio, max_output_tokens: cap } = session;
    const input = isObject(audio) && isObject(audio['input']) ? audio['input'] : {};
    if ('turn_detection' in input && stateOf(session).respondsToSound) this.#mayRespond = true;
    if (typeof cap === 'number') this.#outputMost = Math.max(this.#outputMost, cap);
    if ('format' in input) this.#inputBytes = Math.min(this.#inputBytes, bytesPerSecond(input['format']));
    if (this.#requestedSession !== null) this.#requestedSession = merged(this.#requestedSession, session);
    this.#grow(session);
  }

  confirmed(session: unknown): void {
    const believed = this.#believed(session);
    this.#grow(believed);
    this.#inputBytes = Math.min(this.#inputBytes, bytesPerSecond(stateOf(believed).inputFormat));
    if (this.#unconfirmed > 0) this.#unconfirmed--;
    if (this.#unconfirmed > 0) return;
    this.#state = stateOf(believed);
    this.#mayRespond = false;
    this.#outputMost = 0;
  }

  /** The provider refused a change. What it would have cost more is kept, because nobody knows which one it was. */
  refused(): void {
    if (this.#unconfirmed > 0) this.#unconfirmed--;
  }

  #believed(session: unknown): unknown {
    return this.#requestedSession ?? session;
  }

  #grow(session: unknown): void {
    if (!isObject(session)) return;
    this.#instructions = Math.max(this.#instructions, bytesOf(session['instructions']));
    this.#tools = Math.max(this.#tools, bytesOf(session['tools']));
    this.promptBytes = this.#instructions + this.#tools;
  }
}

/** A session with the changes of an update, which names the members that change. */
function merged(session: JsonObject, update: JsonObject): JsonObject {
  const changed: Record<string, unknown> = { ...session };
  for (const [name, value] of Object.entries(update)) {
    const before = session[name];
    changed[name] = isObject(value) && isObject(before) ? merged(before, value) : value;
  }
  return changed;
}
