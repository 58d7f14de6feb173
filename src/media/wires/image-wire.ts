import type { Offer, PiecedBody } from '#gateway';
import type { ImageAsk } from '../request/image-ask.ts';

/** An API for images, as the gateway calls it. Its replies have the form of OpenAI's API: see createImageReader. */
export interface ImageWire {
  /**
   * The fields of a request, without its images. Throws GatewayError `unprocessable` that names the first field that
   * the offer does not take. `asksForBase64`: false leaves out the field that some models refuse.
   */
  fields(ask: ImageAsk, offer: Offer, asksForBase64: boolean): Readonly<Record<string, unknown>>;
  /** The request. The images of `ask` must be loaded before. */
  request(ask: ImageAsk, offer: Offer, asksForBase64: boolean): WireRequest;
}

interface WireRequest {
  /** Path below the base URL of the offer. */
  readonly path: string;
  readonly contentType: string;
  readonly body: PiecedBody | string;
}
