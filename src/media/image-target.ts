import type { Config } from '#config';
import type { UpstreamFailure } from '#wire';
import { createCheck } from '#http';
import { type Catalog, descriptionOf, listedServices } from '#catalog';
import {
  type Cut,
  type Pipeline,
  type ProviderAdapter,
  type ReplyEnd,
  type ReplyReader,
  type RequestAdapter,
  singleRequest,
} from '#call';
import { type ContentResult, type EventBatch, type FilePart, lastOf, NO_TASK, type TargetAdapter } from '#bridge';
import { imageToCall } from './image-request.ts';
import { unprocessable } from './media-error.ts';
import type { ImagesResult } from './reply/image-reader.ts';
import { type ImageBody, bodySchema, generateFields } from './request/image-fields.ts';
import { withOwnNames } from './request/image-ask.ts';
import { editInputs, type FetchInputs, type InputSource } from './request/input-images.ts';

interface ImageTargetOptions {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers' | 'knows'>;
  readonly config: Pick<Config, 'upstream'>;
  readonly pipeline: Pick<Pipeline, 'shareOf'>;
  readonly fetchInputs: FetchInputs;
}

/**
 * Lets the routes of other protocols call image models, with parts as request and reply. The text of the last turn is
 * the prompt, and its images are edited. The answer has the images as files.
 */
export function createImageTarget({ catalog, config, pipeline, fetchInputs }: ImageTargetOptions): TargetAdapter {
  const replyBytesMax = config.upstream.imagesReplyBytesMax;
  const check = createCheck<ImageBody>(bodySchema('ImageRequest', generateFields));
  return {
    primitive: 'image',
    has: (name) => catalog.knows(name, 'image'),
    list: (limit) => listedServices(catalog.offers('image'), limit),
    async about(name) {
      const { offers } = catalog.resolve(name, 'image');
      const [first] = offers;
      if (first === undefined) return null;
      const edits = offers.some(({ media }) => media?.imageApi?.edits === true);
      return {
        displayName: first.displayName,
        description: descriptionOf(offers),
        offers,
        inputModes: ['text/plain', ...(edits ? ['image/*'] : [])],
        outputModes: ['image/png', 'image/jpeg', 'image/webp'],
      };
    },
    async toCall(name, { turns, arguments: args, stream }, { caller, requestId, traceparent, wantsReceipt }) {
      catalog.resolve(name, 'image');
      const { prompt, files } = lastOf(turns);
      if (prompt === '') throw unprocessable('messages', `${name} needs a text that describes the image`);
      const fetched = () => fetchInputs(caller.account, null);
      const edit = files.length === 0 ? null : editInputs(files.map(sourceOf), null, fetched);
      const body = check(withOwnNames({ ...args, model: name, prompt }));
      const context = {
        caller,
        edit,
        events: { prefix: 'image_generation', partialImages: 0 },
        payment: null,
        requestId,
        headers: {},
        replyBytesMax,
        receipts: 'on-request',
      } as const;
      const { request } = imageToCall(body, context, filesOf);
      if (edit !== null && !caller.anonymous) {
        // For a caller that cannot pay for the call, nothing is fetched.
        await pipeline.shareOf(request);
        await edit.load();
      }
      return { ...request, stream, traceparent, wantsReceipt };
    },
  };
}

function sourceOf({ url, bytes }: FilePart, index: number): InputSource {
  const param = `images[${index}]`;
  return url === null
    ? { kind: 'base64', text: Buffer.from(bytes ?? '', 'latin1'), param }
    : { kind: 'url', url, param };
}

const filesOf = (native: RequestAdapter<ImagesResult>): ProviderAdapter<ContentResult, EventBatch> =>
  singleRequest<ContentResult, EventBatch>({
    ...native,
    reader: (offer) => new ImageFilesReader(native.reader(offer)),
  });

class ImageFilesReader implements ReplyReader<ContentResult, EventBatch> {
  readonly #native: ReplyReader<ImagesResult>;

  constructor(native: ReplyReader<ImagesResult>) {
    this.#native = native;
  }

  get storedBytes(): number | undefined {
    return this.#native.storedBytes;
  }

  head(status: number, headers: Parameters<ReplyReader['head']>[1]): void {
    this.#native.head(status, headers);
  }

  failure(status: number, body: Uint8Array): UpstreamFailure {
    return this.#native.failure(status, body);
  }

  /** Partial images are not given out: an answer in parts has the finished ones. */
  data(chunks: readonly Uint8Array[]): null {
    this.#native.data(chunks);
    return null;
  }

  end(): ReplyEnd<ContentResult> {
    return inFiles(this.#native.end());
  }

  endElsewhere(): Promise<ReplyEnd<ContentResult>> | null {
    return this.#native.endElsewhere?.()?.then(inFiles) ?? null;
  }

  cut(cut: Cut): ReplyEnd<ContentResult> {
    return { ...this.#native.cut(cut), result: { ...NO_TASK, finish: 'cut', error: cut.message } };
  }
}

function inFiles(end: ReplyEnd<ImagesResult>): ReplyEnd<ContentResult> {
  const files = end.result.images.map(({ format, base64 }, index) => ({
    mediaType: `image/${format}`,
    name: `image_${index}.${format === 'jpeg' ? 'jpg' : format}`,
    base64,
  }));
  return { ...end, result: { ...NO_TASK, finish: 'stop', error: null, files } };
}
