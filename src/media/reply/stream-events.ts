import type { ImageHead } from './image-head.ts';

/** The prefix of the names of a stream's events. */
export type EventPrefix = 'image_generation' | 'image_edit';

type Image = Pick<ImageHead, 'format'> & { readonly base64: Buffer };

/** `event: <prefix>.partial_image`, with the provider's own base64. */
export function partialEvent(prefix: EventPrefix, { format, base64 }: Image, index: number): readonly Uint8Array[] {
  return eventOf(`${prefix}.partial_image`, { partial_image_index: index, output_format: format }, base64);
}

/** The last event of a stream. `more`: its other members, besides the image. */
export function completedEvent(prefix: EventPrefix, image: Image, more: object): readonly Uint8Array[] {
  return eventOf(`${prefix}.completed`, { ...more, output_format: image.format }, image.base64);
}

function eventOf(type: string, members: object, base64: Buffer): readonly Uint8Array[] {
  const text = JSON.stringify({ type, ...members });
  return [Buffer.from(`event: ${type}\ndata: ${text.slice(0, -1)},"b64_json":"`), base64, Buffer.from('"}\n\n')];
}

/** An error in the middle of a stream. */
export const errorEvent = (body: object): Uint8Array =>
  Buffer.from(`event: error\ndata: ${JSON.stringify({ type: 'error', ...body })}\n\n`);
