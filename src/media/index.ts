export { imageRoutes } from './image-routes.ts';
export { createImageSpeaker } from './image-speaker.ts';
export { quotableImages } from './quotable-images.ts';
