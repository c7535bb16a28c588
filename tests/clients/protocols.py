"""The protocols of four providers, with the parts that the clients use."""

import json

from stand_in import ASIDE, OTHER, SUMMARY, TURN, Call, StandIn, plain, stream

SUB_AGENT_PROMPT = "Look where the rounding is done"


class Messages(StandIn):
    """Anthropic's Messages API, as Claude Code calls it."""

    summary = (
        "<analysis>Short.</analysis><summary>1. Request: fix calc.py. 2. Work: calc.py was edited.</summary>"
    )
    aside = '{"title": "Fix calc.py", "isNewTopic": true}'

    def kind(self, path, body):
        if "/messages" not in path or "count_tokens" in path:
            return OTHER
        last = json.dumps(body.get("messages", [])[-1:])
        if "detailed summary" in last and "CRITICAL: Respond with TEXT ONLY" in last:
            return SUMMARY
        return TURN if body.get("tools") else ASIDE

    def is_of_sub_agent(self, body):
        return SUB_AGENT_PROMPT in json.dumps(body["messages"][0])

    def answer(self, kind, path, body, step, number):
        if kind == OTHER:
            return plain({"input_tokens": step.tokens})
        content = [{"type": "text", "text": step.text}] if step.text else []
        for index, call in enumerate(step.calls):
            name = f"toolu_{number:04}{index}"
            content.append({"type": "tool_use", "id": name, "name": call.tool, "input": call.arguments})
        stop = "tool_use" if step.calls else "end_turn"
        usage = {
            "input_tokens": step.tokens,
            "output_tokens": 20,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        }
        message = {
            "id": f"msg_{number:04}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            return plain({**message, "content": content, "stop_reason": stop})
        events = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}]
        for index, block in enumerate(content):
            events += self._block(index, block)
        delta = {"stop_reason": stop, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": usage})
        events.append({"type": "message_stop"})
        return stream([(event["type"], event) for event in events])

    @staticmethod
    def _block(index, block):
        if block["type"] == "text":
            start = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        return [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]


class Responses(StandIn):
    """OpenAI's Responses API, as Codex calls it."""

    def kind(self, path, body):
        if not path.rstrip("/").endswith("/responses"):
            return OTHER
        last = json.dumps(body.get("input", [])[-1:])
        return SUMMARY if "CONTEXT CHECKPOINT COMPACTION" in last else TURN

    def answer(self, kind, path, body, step, number):
        if kind == OTHER:
            return plain({})
        items = []
        if step.text:
            content = [{"type": "output_text", "text": step.text}]
            items.append({"type": "message", "role": "assistant", "content": content})
        for index, call in enumerate(step.calls):
            item = {"name": call.tool, "call_id": f"call_{number}_{index}"}
            if isinstance(call.arguments, str):
                items.append({"type": "custom_tool_call", "input": call.arguments, **item})
            else:
                items.append({"type": "function_call", "arguments": json.dumps(call.arguments), **item})
        response = {"id": f"resp_{number}"}
        events = [{"type": "response.created", "response": response}]
        for index, item in enumerate(items):
            item["id"] = f"item_{number}_{index}"
            events.append({"type": "response.output_item.added", "output_index": index, "item": item})
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        usage = {
            "input_tokens": step.tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": step.tokens + 20,
        }
        events.append({"type": "response.completed", "response": {**response, "usage": usage}})
        return stream([(event["type"], event) for event in events])


class GenerateContent(StandIn):
    """Google's Gemini API, as Gemini CLI calls it."""

    summary = "<state_snapshot><overall_goal>Fix calc.py, which was edited.</overall_goal></state_snapshot>"
    # It answers each of the small questions that the client asks besides the turns.
    aside = json.dumps(
        {
            "reasoning": "It is small.",
            "next_speaker": "user",
            "complexity_reasoning": "It is small.",
            "complexity_score": 10,
            "model_choice": "flash",
        }
    )

    def kind(self, path, body):
        if "enerateContent" not in path:
            return OTHER
        if body.get("tools"):
            return TURN
        last = json.dumps(body.get("contents", [])[-1:])
        return SUMMARY if "<state_snapshot>" in last else ASIDE

    def answer(self, kind, path, body, step, number):
        if kind == OTHER:
            return plain({"totalTokens": step.tokens})
        parts = [{"text": step.text}] if step.text else []
        for call in step.calls:
            parts.append({"functionCall": {"name": call.tool, "args": call.arguments}})
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        usage = {
            "promptTokenCount": step.tokens,
            "candidatesTokenCount": 10,
            "totalTokenCount": step.tokens + 10,
        }
        answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3-pro"}
        return stream([(None, answer)]) if "stream" in path else plain(answer)


class ChatCompletions(StandIn):
    """OpenAI's Chat Completions API, as OpenCode calls it."""

    def kind(self, path, body):
        if not path.endswith("/chat/completions"):
            return OTHER
        if body.get("tools"):
            return TURN
        # OpenCode asks for the title of a session without tools, too.
        first = json.dumps(body.get("messages", [])[:1])
        return ASIDE if "title generator" in first else SUMMARY

    def answer(self, kind, path, body, step, number):
        if kind == OTHER:
            return plain({"data": []})
        message = {"role": "assistant", "content": step.text}
        if step.calls:
            message["tool_calls"] = [self._call(number, index, call) for index, call in enumerate(step.calls)]
        finish = "tool_calls" if step.calls else "stop"
        usage = {"prompt_tokens": step.tokens, "completion_tokens": 10, "total_tokens": step.tokens + 10}
        base = {"id": f"chat_{number}", "model": body.get("model")}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return plain({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
        base["object"] = "chat.completion.chunk"
        first = {"index": 0, "delta": message, "finish_reason": None}
        last = {"index": 0, "delta": {}, "finish_reason": finish}
        chunks = [{**base, "choices": [first]}, {**base, "choices": [last], "usage": usage}]
        return stream([(None, chunk) for chunk in chunks] + [(None, "[DONE]")])

    @staticmethod
    def _call(number: int, index: int, call: Call) -> dict:
        function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        return {"index": index, "id": f"call_{number}_{index}", "type": "function", "function": function}
