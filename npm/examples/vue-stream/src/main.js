import { createApp } from "vue";
import StoryTeller from "./story-teller.vue";

createApp(StoryTeller).mount("#app");
