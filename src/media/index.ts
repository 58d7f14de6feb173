export { imageRoutes } from './image-routes.ts';
export type { FetchInputs } from './request/input-images.ts';
export { createImageSpeaker } from './image-speaker.ts';
export { quotableImages } from './quotable-images.ts';
export { quotableVideos } from './video/doors/quote-videos.ts';
export { createVideos, type Videos } from './video/create-videos.ts';
export { createCallbacks } from './video/run/callback.ts';
export { createVideoSpeaker } from './video/video-speaker.ts';
export { videoRoutes } from './video/video-routes.ts';
