import { isObject, RequestError } from './request.ts';

/*
 * The demo's models for audio. `speech` speaks in tones, one for each letter, and notes the text in its WAV file.
 * `transcription` reads that note, because it has no ears.
 */

const RATE = 16_000;
/** A letter sounds for 60 ms. */
const LETTER_SAMPLES = 960;
const CHARACTERS_MAX = 4_096;
const NO_VOICE = 'I hear a sound, and understand only what demo/speech says.';

/** Answers `POST /v1/audio/speech` with a WAV file, or with its samples alone. */
export function speak(body: unknown): { readonly type: string; readonly bytes: Buffer } {
  if (!isObject(body)) throw new RequestError('The body must be a JSON object.', null);
  const { input, voice, response_format: format = 'wav', speed = 1 } = body;
  if (typeof input !== 'string' || input === '' || input.length > CHARACTERS_MAX)
    throw new RequestError(`input must be a text of 1 to ${CHARACTERS_MAX} characters.`, 'input');
  if (typeof voice !== 'string' && !isObject(voice)) throw new RequestError('voice must be a name.', 'voice');
  if (format !== 'wav' && format !== 'pcm')
    throw new RequestError('The demo speaks wav and pcm. Ask for one of them in response_format.', 'response_format');
  const samples = tonesOf(input, Math.round(LETTER_SAMPLES / Number(speed)));
  return format === 'pcm'
    ? { type: 'audio/pcm', bytes: samples }
    : { type: 'audio/wav', bytes: wavOf(samples, Buffer.from(input)) };
}

/** A decaying tone for each letter, and silence for all else. */
function tonesOf(text: string, length: number): Buffer {
  const letters = Array.from(text);
  const samples = Buffer.alloc(letters.length * length * 2);
  letters.forEach((letter, place) => {
    if (!/[\p{L}\p{N}]/u.test(letter)) return;
    const hertz = 220 * 2 ** ((letter.codePointAt(0)! % 24) / 12);
    for (let at = 0; at < length; at++) {
      const wave = Math.sin((2 * Math.PI * hertz * at) / RATE) * (1 - at / length);
      samples.writeInt16LE(Math.round(wave * 12_000), (place * length + at) * 2);
    }
  });
  return samples;
}

/** A WAV of one channel with 16 bits. Its comment (`ICMT`) is the spoken text. */
function wavOf(samples: Buffer, text: Buffer): Buffer {
  const note = chunk('LIST', Buffer.concat([Buffer.from('INFO'), chunk('ICMT', text)]));
  const format = Buffer.alloc(16);
  format.writeUInt16LE(1, 0);
  format.writeUInt16LE(1, 2);
  format.writeUInt32LE(RATE, 4);
  format.writeUInt32LE(RATE * 2, 8);
  format.writeUInt16LE(2, 12);
  format.writeUInt16LE(16, 14);
  return chunk('RIFF', Buffer.concat([Buffer.from('WAVE'), chunk('fmt ', format), note, chunk('data', samples)]));
}

function chunk(name: string, content: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, 0, 'latin1');
  head.writeUInt32LE(content.byteLength, 4);
  // A chunk has an even length.
  return Buffer.concat([head, content, Buffer.alloc(content.byteLength % 2)]);
}

/** Answers `POST /v1/audio/transcriptions`. `form`: the form of the request, with a file. */
export async function transcribe(form: FormData): Promise<{ readonly type: string; readonly text: string }> {
  const file = form.get('file');
  if (file === null || typeof file === 'string') throw new RequestError('file must be a file.', 'file');
  const bytes = Buffer.from(await file.arrayBuffer());
  const text = noteIn(bytes) ?? NO_VOICE;
  const seconds = Math.ceil(bytes.byteLength / (RATE * 2));
  switch (form.get('response_format') ?? 'json') {
    case 'json':
      return json({ text, usage: { type: 'duration', seconds } });
    case 'verbose_json':
      return json({ task: 'transcribe', duration: seconds, text, segments: [{ id: 0, start: 0, end: seconds, text }] });
    case 'text':
      return { type: 'text/plain', text: `${text}\n` };
    default:
      throw new RequestError('The demo writes json, verbose_json and text.', 'response_format');
  }
}

const json = (body: object) => ({ type: 'application/json', text: JSON.stringify(body) });

/** The comment in a WAV file; null if it has none. */
function noteIn(bytes: Buffer): string | null {
  const at = bytes.subarray(0, 64).indexOf('ICMT');
  if (at === -1) return null;
  return bytes.toString('utf8', at + 8, at + 8 + bytes.readUInt32LE(at + 4));
}
