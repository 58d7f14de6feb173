import type { ImageWireName } from './primitive.ts';

/** The paths of each image API below its base address: to make images, and to edit them. */
export const IMAGE_PATHS: Readonly<Record<ImageWireName, { readonly make: string; readonly edit: string }>> = {
  openai: { make: '/images/generations', edit: '/images/edits' },
  tollgate: { make: '/image/generate', edit: '/image/edit' },
  openrouter: { make: '/images', edit: '/images' },
};

/** The path of a video API. Jobs are created there, and each job has a path below it. */
export const VIDEOS_PATH = '/videos';
