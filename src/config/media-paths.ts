import type { ImageWireName } from './primitive.ts';

/** Paths of each API of images below its base address: to make images, and to edit some. */
export const IMAGE_PATHS: Readonly<Record<ImageWireName, { readonly make: string; readonly edit: string }>> = {
  openai: { make: '/images/generations', edit: '/images/edits' },
  tollgate: { make: '/image/generate', edit: '/image/edit' },
  openrouter: { make: '/images', edit: '/images' },
};

/** Path of an API of videos: jobs are made there, and each has a path below it. */
export const VIDEOS_PATH = '/videos';
