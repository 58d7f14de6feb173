import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { CodingFault, contentCoding, Places } from '#wire';
import { GatewayError } from '#errors';
import { printable } from '#security';

/**
 * Bodies that are decoded at the same time. A decoder takes up to 16 MiB whatever it decodes, and a body of 10 MiB
 * takes some 20 ms.
 */
const DECODERS = 4;
/** One account takes no more of them, so that its large bodies leave one to the others. */
const OF_AN_ACCOUNT = 3;

/** The content coding of a request's body; null for none. Throws GatewayError for one that is not decoded. */
export function codingOfBody({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const coding = contentCoding.codingOf(headers['content-encoding']);
  if (coding === null || contentCoding.isKnown(coding)) return coding;
  throw unsupported(coding, contentCoding.known, `send one of ${contentCoding.known}, or the body as it is`);
}

/** Throws GatewayError for a body in a content coding, at a route that reads its body while it arrives. */
export function refuseCoding({ headers }: Pick<FastifyRequest, 'headers'>): void {
  const coding = contentCoding.codingOf(headers['content-encoding']);
  if (coding !== null) throw unsupported(coding, 'identity', 'send the body as it is');
}

const unsupported = (coding: string, supported: string, instead: string) =>
  new GatewayError(
    'unsupported_coding',
    `A body with content-encoding ${printable(coding, CODING_CHARS_MAX)} is not read here: ${instead}, without content-encoding`,
    { param: 'content-encoding', headers: { 'accept-encoding': supported } },
  );

const CODING_CHARS_MAX = 64;

interface Decoding {
  readonly account: string;
  readonly bytesMax: number;
  /** Called with the bytes of content so far. May throw GatewayError. */
  readonly grows: (bytes: number) => void;
  readonly tooLarge: () => GatewayError;
}

/** Decodes the bodies of requests once they have arrived, so that a slow client holds no decoder. */
export class CodedBodies {
  readonly #places = new Places({ total: DECODERS, perShare: OF_AN_ACCOUNT });

  /** Rejects with GatewayError. */
  async contentOf(body: Buffer, coding: string, { account, bytesMax, grows, tooLarge }: Decoding): Promise<Buffer> {
    const place = await this.#places.take(account);
    const pieces: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const piece of contentCoding.decoded(Readable.from([body]), coding)) {
        bytes += piece.byteLength;
        if (bytes > bytesMax) throw tooLarge();
        grows(bytes);
        pieces.push(piece);
      }
    } catch (error) {
      if (!(error instanceof CodingFault)) throw error;
      throw new GatewayError('invalid_request', `The body is ${error.message}, as its content-encoding says`, {
        param: 'content-encoding',
        cause: error,
      });
    } finally {
      place?.release();
    }
    return Buffer.concat(pieces, bytes);
  }
}
