export { quotableImages } from './image-quotes.ts';
export { imageRoutes } from './image-routes.ts';
export { createImageTarget } from './image-target.ts';
export { createFetchInputs } from './request/fetch-inputs.ts';
export { type Videos, createVideos } from './video/create-videos.ts';
export { quotableVideos } from './video/http/quote-videos.ts';
export { videoRoutes } from './video/http/video-routes.ts';
export { type Callbacks, createCallbacks } from './video/run/callback.ts';
export { createVideoTarget } from './video/video-target.ts';
