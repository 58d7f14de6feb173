export { CHAT_WIRES } from './chat-wires.ts';
export { createSealedCalls, createSealedThinking } from './chat/echo-fields.ts';
export { embeddingsRoutes } from './embeddings/embeddings-routes.ts';
export { geminiForm } from './gemini/gemini-error.ts';
export { anthropicForm } from './messages/anthropic-error.ts';
export { createModelTarget, quotableModel } from './model-target.ts';
export { modelsRoutes } from './models/models-routes.ts';
export { createBackground } from './responses/background/background.ts';
export { addRealtime } from './realtime/realtime-routes.ts';
