export { chatRoutes } from './chat-routes.ts';
export { createModelSpeaker } from './model-speaker.ts';
export { modelsRoutes } from './models/models-routes.ts';
