export { imageRoutes } from './image-routes.ts';
export type { FetchInputs } from './request/input-images.ts';
export { createImageTarget } from './image-target.ts';
export { quotableImages } from './image-quotes.ts';
export { quotableVideos } from './video/http/quote-videos.ts';
export { createVideos, type Videos } from './video/create-videos.ts';
export { createCallbacks } from './video/run/callback.ts';
export { createVideoTarget } from './video/video-target.ts';
export { videoRoutes } from './video/http/video-routes.ts';
