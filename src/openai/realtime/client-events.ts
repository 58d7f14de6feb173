import { GatewayError } from '#errors';
import { isObject, type JsonObject } from '#wire';
import { tokenizedBytes, type Offer } from '#catalog';
import { listed } from '../chat/price/paid-extras.ts';
import { bytesPerSecond, type Growth, NO_GROWTH, plus, tokensOfAudio } from './conversation-size.ts';

export interface EventRules {
  /** Names by which the client may call the model of the session. */
  readonly names: readonly string[];
  /** The most tokens of one response. */
  readonly outputMax: number;
  readonly takes: readonly string[];
  readonly gives: readonly string[];
  /** Whether the model lists a field of a session or a response in `params.forward`. */
  readonly lists: (field: string) => boolean;
  /** Bytes of a second of the sound that the client sends, and of the sound that it gets. */
  readonly bytesOfSecond: number;
  readonly spokenBytesOfSecond: number;
}

export function rulesAt(
  offer: Offer,
  rules: Pick<EventRules, 'names' | 'outputMax' | 'bytesOfSecond' | 'spokenBytesOfSecond'>,
): EventRules {
  const { inputModalities: takes, outputModalities: gives } = offer.model!;
  return { ...rules, takes, gives, lists: (field) => listed(offer, field) };
}

export interface ClientEvent {
  /** `respond`: it asks for a response. `audio`: it is heard, and may begin a response. */
  readonly kind: 'session' | 'audio' | 'item' | 'respond' | 'other';
  readonly event: Readonly<Record<string, unknown>>;
  readonly grows: Growth;
  /** A field that was left out; null for none. The client is told. */
  readonly leftOut: GatewayError | null;
}

const SESSION = words(
  'type audio include instructions max_output_tokens model output_modalities parallel_tool_calls reasoning tool_choice tools truncation',
);
const RESPONSE = words(
  'audio conversation input instructions max_output_tokens metadata output_modalities parallel_tool_calls reasoning tool_choice tools',
);
const AUDIO = words('input output');
const AUDIO_INPUT = words('format noise_reduction transcription turn_detection');
const AUDIO_OUTPUT = words('format speed voice');
const TURN_DETECTION = words(
  'type create_response interrupt_response prefix_padding_ms silence_duration_ms threshold eagerness idle_timeout_ms',
);
const ITEM = words('id object type status role content call_id name arguments output');
const PART = words('type text audio transcript image_url detail');

/** Fields with a meaning that a gateway cannot price or let pass, and why. */
const REFUSED: Readonly<Record<string, string>> = {
  prompt: 'is a template at the provider, whose length nobody here knows: send its text as instructions',
  tracing: "would write to the traces of the operator's account",
};

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(' '));
}

/**
 * Reads an event of a client. What is returned is made of the checked members alone, so the provider gets nothing that
 * was not read. Throws GatewayError `invalid_request` for an event that it must not get.
 */
export function readClientEvent(event: JsonObject, rules: EventRules): ClientEvent {
  const { type } = event;
  if (typeof type !== 'string') throw wrong('type', 'must be the name of an event, such as "response.create"');
  const read = Object.hasOwn(READERS, type) ? READERS[type]! : null;
  if (read === null)
    throw wrong('type', `is ${JSON.stringify(type.slice(0, 64))}, which is not an event that clients send here`);
  const { event_id: id } = event;
  if (id !== undefined && (typeof id !== 'string' || id.length > ID_MAX))
    throw wrong('event_id', `must be a text of at most ${ID_MAX} characters`);
  const { fields, kind = 'other', grows = NO_GROWTH, leftOut = null } = read(event, rules);
  return { kind, grows, leftOut, event: { ...(id === undefined ? {} : { event_id: id }), type, ...fields } };
}

const ID_MAX = 512;

interface ReadEvent extends Partial<Pick<ClientEvent, 'kind' | 'grows' | 'leftOut'>> {
  readonly fields: JsonObject;
}

const READERS: Readonly<Record<string, (event: JsonObject, rules: EventRules) => ReadEvent>> = {
  'session.update': readSession,
  'response.create': readResponse,
  'response.cancel': (event) => ({ fields: texts(event, ['response_id']) }),
  'input_audio_buffer.append': (event, rules) => {
    const { audio } = event;
    if (typeof audio !== 'string') throw wrong('audio', 'must be sound in base64');
    mustTake('audio', 'audio', rules);
    return { kind: 'audio', fields: { audio }, grows: ofAudio(audio, rules) };
  },
  'input_audio_buffer.commit': () => ({ kind: 'audio', fields: {} }),
  'input_audio_buffer.clear': () => ({ fields: {} }),
  'output_audio_buffer.clear': () => ({ fields: {} }),
  'conversation.item.create': (event, rules) => {
    const item = readItem(event['item'], 'item', rules);
    return {
      kind: 'item',
      fields: { ...texts(event, ['previous_item_id']), item: item.sent },
      grows: item.grows,
    };
  },
  'conversation.item.delete': (event) => ({ fields: texts(event, ['item_id']) }),
  'conversation.item.retrieve': (event) => ({ fields: texts(event, ['item_id']) }),
  'conversation.item.truncate': (event) => ({
    fields: { ...texts(event, ['item_id']), ...numbers(event, ['content_index', 'audio_end_ms']) },
  }),
};

function readSession(event: JsonObject, rules: EventRules): ReadEvent {
  const { session, transcribes } = readSessionConfig(event['session'], rules);
  return {
    kind: 'session',
    fields: { session },
    leftOut: transcribes
      ? wrong(
          'session.audio.input.transcription',
          'was left out: the model that transcribes has a price of its own, which this model does not cover',
        )
      : null,
  };
}

/**
 * The configuration of a session, as its provider gets it: without its model, and without a transcription of the input.
 * `transcribes`: it asked for one. Throws GatewayError `invalid_request`.
 */
export function readSessionConfig(
  response: unknown,
  rules: EventRules,
): { readonly session: JsonObject; readonly transcribes: boolean } {
  const session = objectOf(response, 'session');
  refuseOthers(session, SESSION, 'session', rules);
  if (session['type'] !== undefined && session['type'] !== 'realtime')
    throw wrong('session.type', 'must be "realtime": other sessions are not served here');
  const sent: Record<string, unknown> = { ...session };
  sent['type'] = 'realtime';
  refuseOtherModel(session['model'], rules);
  delete sent['model'];
  const { audio, transcribes } = readAudio(session['audio'], 'session.audio');
  if (audio !== undefined) sent['audio'] = audio;
  readCommon(session, sent, 'session', rules);
  return { session: sent, transcribes };
}

function readResponse(event: JsonObject, rules: EventRules): ReadEvent {
  const { response: requestedResponse } = event;
  if (requestedResponse === undefined || requestedResponse === null) return { kind: 'respond', fields: {} };
  const response = objectOf(requestedResponse, 'response');
  refuseOthers(response, RESPONSE, 'response', rules);
  const sent: Record<string, unknown> = { ...response };
  const { audio } = readAudio(response['audio'], 'response.audio');
  if (audio !== undefined) sent['audio'] = audio;
  refuseOtherFormat(audio?.['output'], rules);
  readCommon(response, sent, 'response', rules);
  let grows: Growth = { ...NO_GROWTH, bytes: bytesOf(response['instructions']) + bytesOf(response['tools']) };
  if (response['input'] !== undefined) {
    if (!Array.isArray(response['input'])) throw wrong('response.input', 'must be a list of items');
    const ids = new Set<unknown>();
    sent['input'] = (response['input'] as unknown[]).map((one, index) => {
      const at = `response.input[${index}]`;
      const id = isObject(one) ? (one['id'] ?? null) : null;
      // The conversation counts each of its items once, and a provider would count each reference.
      if (id !== null && ids.has(id)) throw wrong(`${at}.id`, 'is that of an item before it: name each item once');
      ids.add(id);
      if (isObject(one) && one['type'] === 'item_reference') {
        if (typeof id !== 'string' || id === '' || id.length > ID_MAX)
          throw wrong(`${at}.id`, `must be the id of an item, of at most ${ID_MAX} characters`);
        return { type: 'item_reference', id };
      }
      const item = readItem(one, at, rules);
      grows = plus(grows, item.grows);
      return item.sent;
    });
  }
  return { kind: 'respond', fields: { response: sent }, grows };
}

/** The sound that comes is measured by its bytes, and nobody knows which response another format would be of. */
function refuseOtherFormat(output: unknown, { spokenBytesOfSecond }: EventRules): void {
  const format = isObject(output) ? output['format'] : undefined;
  if (format === undefined || format === null || bytesPerSecond(format) === spokenBytesOfSecond) return;
  throw wrong(
    'response.audio.output.format',
    'is not that of the session, which is measured by it: change it with session.update, as session.audio.output.format',
  );
}

/** The members that sessions and responses share. */
function readCommon(requestedSession: JsonObject, sent: Record<string, unknown>, at: string, rules: EventRules): void {
  const { max_output_tokens: cap, output_modalities: modalities, tools, tool_choice: choice } = requestedSession;
  if (cap !== undefined) {
    if (cap !== 'inf' && !(Number.isSafeInteger(cap) && (cap as number) > 0))
      throw wrong(`${at}.max_output_tokens`, 'must be a whole number above 0, or "inf"');
    sent['max_output_tokens'] = cap === 'inf' ? rules.outputMax : Math.min(cap as number, rules.outputMax);
  }
  if (Array.isArray(modalities)) {
    for (const kind of modalities as unknown[])
      if (typeof kind !== 'string' || !rules.gives.includes(kind))
        throw wrong(`${at}.output_modalities`, `may have ${rules.gives.join(', ')}: this model gives nothing else`);
  } else if (modalities !== undefined) throw wrong(`${at}.output_modalities`, 'must be a list');
  if (tools !== undefined) {
    if (!Array.isArray(tools)) throw wrong(`${at}.tools`, 'must be a list of functions');
    for (const tool of tools as unknown[])
      if (!isObject(tool) || tool['type'] !== 'function')
        throw wrong(`${at}.tools`, 'may have functions alone: tools that the provider runs have a price of their own');
  }
  if (isObject(choice) && choice['type'] !== 'function') throw wrong(`${at}.tool_choice`, 'may name a function alone');
}

/** `transcribes`: it asks for a transcription of the input, which is left out. */
function readAudio(
  requestedAudio: unknown,
  at: string,
): { readonly audio?: JsonObject; readonly transcribes: boolean } {
  if (requestedAudio === undefined) return { transcribes: false };
  const audio = objectOf(requestedAudio, at);
  refuseOthers(audio, AUDIO, at);
  const sent: Record<string, unknown> = { ...audio };
  let transcribes = false;
  if (audio['output'] !== undefined)
    refuseOthers(objectOf(audio['output'], `${at}.output`), AUDIO_OUTPUT, `${at}.output`);
  if (audio['input'] !== undefined) {
    const input = objectOf(audio['input'], `${at}.input`);
    refuseOthers(input, AUDIO_INPUT, `${at}.input`);
    const { transcription, ...rest } = input;
    transcribes = transcription !== undefined && transcription !== null;
    sent['input'] = rest;
    const { turn_detection: detection } = input;
    if (isObject(detection)) {
      refuseOthers(detection, TURN_DETECTION, `${at}.input.turn_detection`);
      if (detection['idle_timeout_ms'] !== undefined && detection['idle_timeout_ms'] !== null)
        throw wrong(
          `${at}.input.turn_detection.idle_timeout_ms`,
          'is not served here, because it begins responses that nobody asked for',
        );
    }
  }
  return { audio: sent, transcribes };
}

const ITEM_TYPES = ['message', 'function_call', 'function_call_output'];

function readItem(
  requested: unknown,
  at: string,
  rules: EventRules,
): { readonly sent: JsonObject; readonly grows: Growth } {
  const item = objectOf(requested, at);
  refuseOthers(item, ITEM, at);
  if (!ITEM_TYPES.includes(item['type'] as string))
    throw wrong(`${at}.type`, `must be one of ${ITEM_TYPES.join(', ')}`);
  const { content, ...rest } = item;
  let grows: Growth = { ...NO_GROWTH, items: 1, bytes: bytesOf(rest) };
  if (content === undefined) return { sent: item, grows };
  if (!Array.isArray(content)) throw wrong(`${at}.content`, 'must be a list of parts');
  for (const [index, part] of (content as unknown[]).entries())
    grows = plus(grows, readPart(part, `${at}.content[${index}]`, rules));
  return { sent: item, grows };
}

function readPart(requestedPart: unknown, at: string, rules: EventRules): Growth {
  const part = objectOf(requestedPart, at);
  refuseOthers(part, PART, at);
  const { audio, image_url: image, ...rest } = part;
  let grows: Growth = { ...NO_GROWTH, bytes: bytesOf(rest) };
  if (audio !== undefined && audio !== null) {
    if (typeof audio !== 'string') throw wrong(`${at}.audio`, 'must be sound in base64');
    mustTake('audio', `${at}.audio`, rules);
    grows = plus(grows, ofAudio(audio, rules));
  }
  if (image === undefined || image === null) return grows;
  if (typeof image !== 'string' || !/^data:image\//i.test(image))
    throw wrong(`${at}.image_url`, 'must be a data URI with a picture: the provider fetches nothing');
  mustTake('image', `${at}.image_url`, rules);
  return { ...grows, images: 1 };
}

const ofAudio = (base64: string, { bytesOfSecond }: EventRules): Growth => ({
  ...NO_GROWTH,
  audioTokens: tokensOfAudio(base64, bytesOfSecond),
});

function mustTake(kind: string, at: string, { takes }: EventRules): void {
  if (!takes.includes(kind)) throw wrong(at, `is ${kind}, and this model takes ${takes.join(', ')}`);
}

function refuseOtherModel(model: unknown, { names }: EventRules): void {
  if (model !== undefined && !names.includes(model as string))
    throw wrong('session.model', `must be ${names[0]}, the model in the address of the session: it cannot be changed`);
}

/** `rules`: of an object that may have fields that the model lists. */
function refuseOthers(requestedMembers: JsonObject, known: ReadonlySet<string>, at: string, rules?: EventRules): void {
  for (const [name, value] of Object.entries(requestedMembers)) {
    if (known.has(name) || rules?.lists(name)) continue;
    // A field that is switched off asks for nothing.
    if (value === null && Object.hasOwn(REFUSED, name)) continue;
    const why = Object.hasOwn(REFUSED, name) ? REFUSED[name]! : 'is not a field that is known here';
    throw wrong(`${at}.${name.slice(0, 64)}`, why);
  }
}

function texts(event: JsonObject, names: readonly string[]): JsonObject {
  const readMembers: Record<string, unknown> = {};
  for (const name of names) {
    const value = event[name];
    if (value === undefined) continue;
    if (value !== null && (typeof value !== 'string' || value.length > ID_MAX))
      throw wrong(name, `must be a text of at most ${ID_MAX} characters`);
    readMembers[name] = value;
  }
  return readMembers;
}

function numbers(event: JsonObject, names: readonly string[]): JsonObject {
  const readMembers: Record<string, unknown> = {};
  for (const name of names) {
    if (event[name] === undefined) continue;
    if (typeof event[name] !== 'number') throw wrong(name, 'must be a number');
    readMembers[name] = event[name];
  }
  return readMembers;
}

const objectOf = (value: unknown, at: string): JsonObject => {
  if (!isObject(value)) throw wrong(at, 'must be an object');
  return value;
};

/** Bytes of a text, or of a structure as JSON, as a tokenizer gets them. */
export const bytesOf = (value: unknown): number =>
  value === undefined || value === null ? 0 : tokenizedBytes(typeof value === 'string' ? value : JSON.stringify(value));

const wrong = (param: string, what: string): GatewayError =>
  new GatewayError('invalid_request', `${param} ${what}`, { param });
