export { chatRoutes } from './chat-routes.ts';
export { createModelSpeaker } from './model-speaker.ts';
export { quotableChat } from './quotable-chat.ts';
export { modelsRoutes } from './models/models-routes.ts';
