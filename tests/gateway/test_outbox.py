"""The outbox: what may never have been delivered is sent again, as the same bytes."""


def test_what_perhaps_never_left_is_sent_again(place):
    sent = place.gateway.handle([place.message()])
    assert len(sent) == 1
    place.again()
    assert place.gateway.resend() == sent
    assert [out.to_json() for out in place.gateway.resend()] == [out.to_json() for out in sent]
    place.gateway.delivered(sent)
    assert place.gateway.resend() == []
    place.again()
    assert place.gateway.resend() == []
    assert place.gateway.counters["sent again"] == 0


def test_without_asking_the_first_readings_bring_it_along(place):
    [sent] = place.gateway.handle([place.message()])
    place.again()
    assert place.tick("bob")[0] == sent
