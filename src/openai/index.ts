export { chatRoutes } from './chat-routes.ts';
export { embeddingsRoutes } from './embeddings/embeddings-routes.ts';
export { messagesRoutes } from './messages/messages-routes.ts';
export { createSealedThinking } from './translated/sealed-thinking.ts';
export { responsesRoutes } from './responses/responses-routes.ts';
export { createModelSpeaker } from './model-speaker.ts';
export { quotableChat } from './quotable-chat.ts';
export { modelsRoutes } from './models/models-routes.ts';
